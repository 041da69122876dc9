"""The rules of the ZooKeeper generation that have a switch, beside those of the data plane.

`ZkRules` has all of `nodes.rules`, of which those of replicas and clients hold here as well; those
of the quorum, of leases and of visibility have no part in this generation. `ZK_RULES` are the own
ones of this generation, as values.
"""

from dataclasses import dataclass, fields
from typing import Final

from fencepost.clusters.reference.nodes.rules import ProtocolRule, Rules, protocol_rule

_Z: Final = "controller heartbeats"
_H: Final = "broker id by host name"


@dataclass(slots=True, kw_only=True)
class ZkRules(Rules):
    """The rules that are kept."""

    # Kafka's own, which document Z builds upon.
    state_written_by_version: bool = protocol_rule(
        "Kafka's controller",
        "A partition's state is written only over the version that was read.",
        "A controller or leader overwrites a decision that it has not seen.",
        "epoch-went-back, nonlinearizable-isr, lost-write",
    )
    controller_epoch_fences_writes: bool = protocol_rule(
        "Kafka's controller (KAFKA-6082)",
        "A controller writes only while the controller epoch is still its own.",
        "A deposed controller decides on.",
        "deposed-controller-write, two-leaders",
        unseen="A controller is deposed by the end of its session, and ends its office before it "
        "has another one: ZooKeeper refuses what the old one asks for, whatever it checks.",
    )
    controller_epoch_checked: bool = protocol_rule(
        "Kafka's brokers",
        "A broker refuses requests of a controller older than the newest that it heard of.",
        "A deposed controller tells brokers what holds no more.",
        "stale-request-accepted, two-leaders",
    )
    broker_epoch_checked: bool = protocol_rule(
        "KIP-380",
        "A broker refuses requests that are for another incarnation of it.",
        "A request for the broker before its restart is carried out by the one after it.",
        "stale-request-accepted, lost-write",
    )
    # Incarnation ids (Z01, Z04).
    incarnation_from_czxid: bool = protocol_rule(
        _Z,
        "A broker's incarnation id is the zxid that made its registration, so it grows.",
        "Two incarnations of a broker cannot be told apart.",
        "stuck-replica, shared-identity, unsafe-leader-candidate, lost-write",
    )
    unseen_restarts_found: bool = protocol_rule(
        "controller heartbeats, beyond the draft",
        "A member that registered after its state was written is new to the next controller.",
        "A broker that was wiped and restarted without a controller stays in its ISRs, and leads.",
        "lost-write",
    )
    new_incarnation_told_all: bool = protocol_rule(
        _Z,
        "A broker with a new incarnation id is told the state of all of its partitions.",
        "A restarted broker never learns which replicas it has.",
        "stuck-isr, stuck-replica",
    )
    old_incarnation_refused: bool = protocol_rule(
        _Z,
        "A heartbeat with an incarnation id below the known one is refused.",
        "Two processes act as one broker.",
        "shared-identity",
    )
    newer_incarnation_taken: bool = protocol_rule(
        _Z,
        "A heartbeat with an incarnation id above the known one is of the valid broker.",
        "A broker that the controller has not seen register is refused.",
        "valid-incarnation-refused",
    )
    bad_heartbeat_refused: bool = protocol_rule(
        _Z,
        "A heartbeat with a negative broker id or target state that is none is refused.",
        "A broker that cannot be is kept by the controller.",
        "bad-heartbeat-accepted",
    )
    # States and time-outs (Z02, Z06 to Z08).
    inactive_at_first: bool = protocol_rule(
        _Z,
        "A broker is inactive until it has sent a heartbeat.",
        "A broker that cannot reach the controller leads.",
        "inactive-leader",
    )
    inactive_left_out: bool = protocol_rule(
        _Z,
        "Inactive brokers are left out of the metadata, of ISRs and of elections.",
        "Clients are sent to a broker that may not serve them.",
        "inactive-leader",
    )
    active_once_told: bool = protocol_rule(
        "controller heartbeats, beyond the draft",
        "An inactive broker is active again once it has taken the state that it missed.",
        "A broker serves again while it still shows what it did when it was fenced.",
        "unfenced-too-early, stale-read-after-write, lost-write",
    )
    controller_ends_silence: bool = protocol_rule(
        _Z,
        "A broker is inactive once no heartbeat came for the controller-side time-out.",
        "A broker that cannot reach the controller leads on.",
        "inactive-leader",
    )
    broker_ends_silence: bool = protocol_rule(
        _Z,
        "A broker that hears nothing of the controller for the broker-side time-out fences itself.",
        "A broker that is cut off serves metadata of any age, and records that are lost.",
        "served-while-fenced, stale-read-after-write",
    )
    timeouts_ordered: bool = protocol_rule(
        _Z,
        "A broker-side time-out not longer than the controller-side one is refused at the start.",
        "Brokers fence themselves that the controller still counts on.",
        "timeouts-out-of-order",
    )
    leaderships_moved_before_stop: bool = protocol_rule(
        _Z,
        "A stopping broker may end once it leads nothing that another could lead.",
        "Partitions are without a leader for a while at each stop.",
        "unsafe-shutdown",
        unseen="The controller answers STOPPING once it has moved all leaderships, in any case: a "
        "broker that does not wait differs from one whose last LeaderAndIsr has come already.",
    )
    # IsrChange (Z09, Z10).
    isr_change_of_old_incarnation_refused: bool = protocol_rule(
        _Z,
        "An IsrChange of another incarnation than the registered one is refused.",
        "A process that is a broker no more changes ISRs.",
        "epoch-check-bypassed",
    )
    isr_change_of_leader_alone: bool = protocol_rule(
        _Z,
        "An IsrChange is refused unless its sender leads the partition in the epoch it names.",
        "A deposed leader takes members into the ISR that lack records.",
        "epoch-check-bypassed, lost-write",
    )
    empty_isr_refused: bool = protocol_rule(
        _Z,
        "An IsrChange to an ISR without members, or without its leader, is refused.",
        "A partition is without any replica that may lead it.",
        "empty-isr, two-leaders",
    )
    member_incarnations_checked: bool = protocol_rule(
        "KIP-903, beyond the draft",
        "A follower may join the ISR only in the incarnation that the leader saw fetch.",
        "A wiped follower joins the ISR by a request of before (off in the draft itself).",
        "stale-epoch-join, lost-write",
        is_on=False,
    )
    # The inter-broker protocol and the double roll (Z11, Z12).
    new_behaviour_gated: bool = protocol_rule(
        _Z,
        "Below the new inter-broker protocol a broker neither heartbeats nor sends IsrChange.",
        "Brokers ask controllers of the old software what these do not understand.",
        "ungated-request",
    )
    legacy_always_active: bool = protocol_rule(
        _Z,
        "A legacy registration is active without heartbeats.",
        "During a double roll the brokers of the old protocol are taken out.",
        "legacy-inactive, stuck-replica",
    )
    # Broker ids (H01 to H05).
    id_sources_agree: bool = protocol_rule(
        _H,
        "An id on the command line and another on the disk are an error.",
        "A broker serves the replicas of another id from its disk.",
        "wrong-id",
    )
    id_of_disk_before_zookeeper: bool = protocol_rule(
        _H,
        "The id on the disk is used before any that ZooKeeper has.",
        "A broker with data takes an id whose replicas are elsewhere.",
        "wrong-id",
    )
    host_keeps_its_id: bool = protocol_rule(
        _H,
        "A host without a disk tries the id that it had before (step a).",
        "A replaced disk means a new id, and replicas that nobody has.",
        "wrong-id",
    )
    one_missing_id_alone: bool = protocol_rule(
        _H,
        "Of several missing ids none is taken (step b).",
        "A broker takes the id of one that is only restarting.",
        "wrong-id",
        # A host that was there before finds its id by its name.
        beside="host_keeps_its_id",
    )
    host_mapping_written: bool = protocol_rule(
        _H,
        "A broker writes its id under its host's name once it has registered.",
        "The next start of that host does not find its id.",
        "wrong-host-mapping",
    )
    host_garbage_removed: bool = protocol_rule(
        _H,
        "A host's entry whose id is registered by another host is removed.",
        "A host that comes back tries an id that is another's.",
        "host-garbage",
        # Without them a host takes an id that another one had.
        beside="one_missing_id_alone, host_keeps_its_id",
    )


def _rules() -> tuple[ProtocolRule, ...]:
    inherited = {one.name for one in fields(Rules)}
    own = (one for one in fields(ZkRules) if one.name not in inherited)
    return tuple(ProtocolRule(name=one.name, **one.metadata) for one in own)


ZK_RULES: Final = _rules()
