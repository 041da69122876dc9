"""The rules of the five documents, one by one: what each says, and the switches that stand for it.

Z is the draft "Controller heartbeats, broker incarnation ids", H the draft on broker ids by host
name, K is KIP-631 as it was first written, E is KIP-903, and V the draft "Lowest acknowledged
offset". Tests are named after the rules (`test_z07_…`). A rule that cannot be switched off, or
whose absence no check can see, says why.

Switches that no rule here names are of what the documents build upon: replication, elections and
the quorum.
"""

from dataclasses import dataclass
from typing import Final

DOCUMENTS: Final = {
    "Z": "Controller heartbeats, broker incarnation ids",
    "H": "Broker id by host name",
    "K": "KIP-631, registration, heartbeats and fencing",
    "E": "KIP-903, stale broker epochs",
    "V": "Lowest acknowledged offset",
}


@dataclass(frozen=True, slots=True)
class DocumentRule:
    """One rule of a document."""

    id: str
    """Its document's letter, and its number there."""
    says: str
    switches: tuple[str, ...] = ()
    """The switches that stand for it."""
    why: str = ""
    """The reason for which it has no switch, or for which no check can find out that it is off."""
    code: tuple[str, ...] = ()
    """Modules of the reference cluster that keep it, beside those that read its switches."""
    tests: str = ""
    """The rule whose tests are its own, if they are not named after it."""


def _rule(number: str, says: str, switches: str = "", **others: object) -> DocumentRule:
    return DocumentRule(number, says, tuple(switches.split()), **others)  # type: ignore[arg-type]


_LAYOUT: Final = "a layout: a tool that reads the wire would not understand another one"
_NO_OTHER_WAY: Final = "no switch leaves it out: its tests alone show that it is kept"
_OUTCOME: Final = "an outcome, not a rule: scenarios show it"

DOCUMENT_RULES: Final = (
    _rule(
        "Z01",
        "A broker's incarnation id is the czxid of its registration, and grows.",
        "incarnation_from_czxid",
    ),
    _rule(
        "Z02",
        "Brokers are inactive at first, and inactive ones are left out of the metadata.",
        "inactive_at_first inactive_left_out",
    ),
    _rule("Z03", "MetadataHeartbeat and its response.", why=_LAYOUT, code=("zk/messages.py",)),
    _rule(
        "Z04",
        "A lower incarnation id than the known one is refused, a higher one is taken over.",
        "old_incarnation_refused newer_incarnation_taken new_incarnation_told_all",
    ),
    _rule(
        "Z05", "A heartbeat with bad fields is answered INVALID_REQUEST.", "bad_heartbeat_refused"
    ),
    _rule(
        "Z06",
        "The target state decides, and the response has the state to move to.",
        why=_NO_OTHER_WAY,
        code=("zk/control/heartbeats.py",),
    ),
    _rule(
        "Z07",
        "A broker that is silent for the controller-side time-out is inactive.",
        "controller_ends_silence",
    ),
    _rule(
        "Z08",
        "A broker that hears nothing for the broker-side time-out, which is longer, fences itself.",
        "broker_ends_silence timeouts_ordered",
    ),
    _rule(
        "Z09",
        "IsrChange and its response, results in the order of the request.",
        why=_LAYOUT,
        code=("zk/messages.py", "zk/isr_changes.py"),
    ),
    _rule(
        "Z10",
        "An IsrChange is refused if its sender is not the leader in that incarnation, or its ISR "
        "cannot be.",
        "isr_change_of_old_incarnation_refused isr_change_of_leader_alone empty_isr_refused",
    ),
    _rule(
        "Z11",
        "Below the new inter-broker protocol there are no heartbeats, and leaders write ISRs.",
        "new_behaviour_gated",
    ),
    _rule(
        "Z12",
        "A legacy registration (version 4) is always active.",
        "legacy_always_active",
    ),
    _rule(
        "Z13",
        "A double roll serves throughout and loses nothing.",
        why=_OUTCOME,
        code=("zk/configuration.py", "zk/situation.py"),
    ),
    _rule(
        "Z14",
        "A stopping broker ends once its leaderships are moved.",
        "leaderships_moved_before_stop",
    ),
    _rule(
        "H01",
        "An id comes from the command line, the disk, or ZooKeeper; the first two must agree.",
        "id_sources_agree id_of_disk_before_zookeeper",
    ),
    _rule(
        "H02", "The id is kept under the host's name after registration.", "host_mapping_written"
    ),
    _rule("H03", "Step a: the id that the host had is tried first.", "host_keeps_its_id"),
    _rule(
        "H04",
        "Step b: the one missing id is taken, several are an error, else a new id is.",
        "one_missing_id_alone",
    ),
    _rule("H05", "Entries of hosts whose id another host has are removed.", "host_garbage_removed"),
    _rule(
        "H06",
        "The corner cases come out as the document says.",
        why=_OUTCOME,
        code=("zk/broker_id.py",),
    ),
    _rule(
        "K01",
        "BrokerRegistration and its response.",
        why=_LAYOUT,
        code=("nodes/messages/control.py",),
    ),
    _rule("K02", "The broker epoch is an offset of the metadata log.", "epoch_from_offset"),
    _rule(
        "K03",
        "An id that is in use, and a broker that lacks an enabled feature level, are refused.",
        "live_id_refused features_checked",
    ),
    _rule(
        "K04",
        "A registration is a lease that ends on both sides.",
        "controller_ends_leases broker_ends_lease",
    ),
    _rule("K05", "A heartbeat of a stale epoch is refused.", "stale_heartbeat_refused"),
    _rule(
        "K06",
        "A fenced broker serves nobody, leads nothing and leaves the ISRs.",
        "fenced_serves_nobody fenced_leads_nothing fenced_leaves_isr",
    ),
    _rule(
        "K07",
        "A broker's states and their transitions.",
        why=_NO_OTHER_WAY,
        code=("nodes/life_cycle_transitions.py",),
    ),
    _rule("K08", "A broker is unfenced once it has caught up.", "unfenced_when_caught_up"),
    _rule("K09", "Leaderships are moved before a broker shuts down.", "leaderships_moved_first"),
    _rule(
        "K10",
        "Brokers fetch the metadata log, or a snapshot, and remove stray directories.",
        why=_NO_OTHER_WAY,
        code=("nodes/quorum/fetching.py", "nodes/quorum/observer.py"),
    ),
    _rule("K11", "A node starts on a formatted disk alone.", "format_required"),
    _rule(
        "K12",
        "The properties have the document's names.",
        why="a refusal at the start: there is no run to judge",
        code=("shell/properties.py",),
    ),
    _rule(
        "K13",
        "LeaderAndIsr, UpdateMetadata, StopReplica and ControlledShutdown are not used.",
        why="these nodes cannot send what they have no code for",
        code=("nodes/controller.py",),
    ),
    _rule(
        "E01",
        "A replica whose broker epoch is stale does not join the ISR.",
        "member_epochs_checked epoch_from_fetch",
        tests="E08",
    ),
    _rule(
        "E02",
        "Followers send their epoch in Fetch v15.",
        why=_NO_OTHER_WAY,
        code=("codec/data_apis.py",),
    ),
    _rule("E03", "A leader proposes by the epochs of fetches.", "epoch_from_fetch"),
    _rule("E04", "The controller compares every member's epoch.", "member_epochs_checked"),
    _rule("E05", "A refused proposal is dropped.", "refused_proposal_dropped"),
    _rule("E06", "The last member of an ISR stays in it.", "last_member_stays"),
    _rule(
        "E07",
        "The checks are gated by metadata.version and ApiVersions.",
        why="an older level is a setting, and shows the hole: `kip-903 --metadata-version 1`",
        code=("nodes/levels.py",),
    ),
    _rule(
        "E08",
        "The document's race loses data below level 2 alone.",
        why=_OUTCOME,
        code=("nodes/control/alter_partition.py",),
    ),
    _rule(
        "V01",
        "The controller tells the lowest offset that all unfenced brokers have acknowledged.",
        "lowest_of_all",
    ),
    _rule("V02", "A broker hides metadata above it.", "hidden_above_lowest"),
    _rule("V03", "Reads do not go back, and show what was acknowledged.", "read_waits write_waits"),
    _rule(
        "V04", "A fenced broker holds nobody back, and comes back caught up.", "lowest_never_back"
    ),
    _rule("V05", "APIs of a new level are offered once all have it.", "renegotiates_late"),
    _rule(
        "V06",
        "The document's trace.",
        why=_OUTCOME,
        code=("nodes/control/visibility.py",),
    ),
)
