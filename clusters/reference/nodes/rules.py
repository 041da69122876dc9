"""Every rule of the protocols that has a switch, and the bug that it prevents, in one table.

A cluster is built with a `Rules`; with all of them on it is the protocol. Switched off, the bug is
open, and a checker has to find it: `fencepost selftest` measures how soon. A rule is a field of
`Rules`, read by the one state machine that keeps it, where a comment names it; what the rule says
stands at its field, and `RULES` has it as values.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolRule:
    """One rule: where it is from, what it says, and what goes wrong without it."""

    name: str
    """The field of `Rules`."""
    source: str
    """E.g. "KIP-903", "KIP-631 fencing"."""
    says: str
    prevents: str
    """The bug that is open without it."""
    shows_as: tuple[str, ...]
    """Anomalies, by the catalogue's names, any of which a run without it may show."""
    level_min: int = 1
    """The lowest metadata.version at which the rule exists."""
    level_max: int = 3
    """The highest at which no other rule does its work."""
    beside: tuple[str, ...] = ()
    """Rules that do the same work: without them, too, the bug can show at all."""
    unseen: str = ""
    """The reason for which no check can find out that it is off; empty: one can."""


def protocol_rule(
    source: str,
    says: str,
    prevents: str,
    shows_as: str,
    *,
    beside: str = "",
    is_on: bool = True,
    **others: int | str,
) -> Any:
    """A switch, with what `ProtocolRule` has of it; names are parted by commas."""
    names = {"shows_as": _parted(shows_as), "beside": _parted(beside)}
    said = {"source": source, "says": says, "prevents": prevents}
    return field(default=is_on, metadata={**said, **names, **others})


def _parted(names: str) -> tuple[str, ...]:
    return tuple(names.split(", ")) if names else ()


@dataclass(slots=True, kw_only=True)
class Rules:
    """The rules that are kept. Not frozen for speed alone: no rule changes after the start."""

    # Registration, leases and fencing (KIP-631).
    epoch_from_offset: bool = protocol_rule(
        "KIP-631 registration",
        "A broker epoch is the offset of its registration in the metadata log, so it grows.",
        "Two incarnations of a broker have one broker epoch and cannot be told apart.",
        "epoch-went-back, stale-epoch-join, lost-write",
    )
    live_id_refused: bool = protocol_rule(
        "KIP-631 registration",
        "A registration is refused while the lease of another process with its id lasts.",
        "Two processes act as one broker at the same time.",
        "shared-identity",
    )
    features_checked: bool = protocol_rule(
        "KIP-631 registration",
        "A broker that does not support an enabled feature level is refused.",
        "A broker takes part in a protocol that it does not speak.",
        "illegal-transition",
    )
    controller_ends_leases: bool = protocol_rule(
        "KIP-631 leases",
        "A broker whose lease ran out without a heartbeat is fenced by the controller.",
        "A dead broker stays the leader for ever.",
        "fencing-too-late",
    )
    broker_ends_lease: bool = protocol_rule(
        "KIP-631 leases",
        "A broker whose lease ran out fences itself.",
        "A broker that was deposed answers clients from its old metadata.",
        "served-while-fenced",
    )
    stale_heartbeat_refused: bool = protocol_rule(
        "KIP-631 heartbeats",
        "A heartbeat with a broker epoch other than the registered one is refused.",
        "A superseded process keeps the lease of its successor alive.",
        "fencing-too-late, shared-identity",
    )
    fenced_serves_nobody: bool = protocol_rule(
        "KIP-631 fencing",
        "A fenced broker answers no client.",
        "Clients read from a broker whose metadata and records are old.",
        "served-while-fenced",
    )
    fenced_leads_nothing: bool = protocol_rule(
        "KIP-631 fencing",
        "A fenced broker is never elected.",
        "A partition is led by a broker that answers no client.",
        "illegal-transition, ineligible-member",
    )
    fenced_leaves_isr: bool = protocol_rule(
        "KIP-631 fencing",
        "A broker that is fenced leaves every ISR of which it is not the last member.",
        "An ISR includes a replica that may have lost its records.",
        "ineligible-member, lost-write",
    )
    last_member_stays: bool = protocol_rule(
        "KIP-903, the exception",
        "The last member of an ISR stays in it when it is fenced.",
        "An ISR is empty, so it is unknown which replica has all records.",
        "empty-isr, illegal-transition, lost-write",
    )
    unfenced_when_caught_up: bool = protocol_rule(
        "KIP-631 fencing",
        "A broker is unfenced once it has applied the metadata log up to its registration.",
        "A broker serves clients with metadata from before its own start.",
        "unfenced-too-early, illegal-transition, stale-read-after-write, lost-write, "
        "false-lowest-acknowledged-offset",
    )
    leaderships_moved_first: bool = protocol_rule(
        "KIP-631 controlled shutdown",
        "A broker may shut down once it leads no partition.",
        "A broker shuts down while it leads a partition.",
        "unsafe-shutdown",
    )
    format_required: bool = protocol_rule(
        "KIP-631 storage",
        "A node starts only on a disk that was formatted for it.",
        "A node that lost its disk votes and leads as if it had lost nothing.",
        "metadata-divergence, lost-write",
    )
    role_after_registration: bool = protocol_rule(
        "KIP-631 registration",
        "A broker takes no role before its metadata has passed its own registration.",
        "A wiped leader replays old records, leads again, and its followers truncate to nothing.",
        "lost-write, truncated-below-high-watermark",
    )
    # Stale broker epochs (KIP-903).
    epoch_from_fetch: bool = protocol_rule(
        "KIP-903 leader",
        "A leader takes a follower's broker epoch from its fetches, not from the metadata.",
        "Fetches from before a follower's restart count for its next incarnation.",
        "stale-epoch-join, lost-write, unsafe-leader-candidate",
        level_min=2,
    )
    member_epochs_checked: bool = protocol_rule(
        "KIP-903 controller",
        "A proposed member whose broker epoch is not the registered one is refused.",
        "A replica that lost its records joins the ISR.",
        "stale-epoch-join, epoch-check-bypassed, lost-write",
        level_min=2,
    )
    refused_proposal_dropped: bool = protocol_rule(
        "KIP-903 leader",
        "A leader whose proposal is refused goes back to the committed ISR.",
        "A leader counts on an ISR that does not exist.",
        "stuck-isr",
        level_min=2,
    )
    # AlterPartition and elections.
    partition_epoch_compared: bool = protocol_rule(
        "KIP-497 AlterPartition",
        "A proposal for a partition epoch other than the present one is refused.",
        "An outdated proposal undoes a later change.",
        "nonlinearizable-isr, lost-write",
    )
    leader_epoch_compared: bool = protocol_rule(
        "KIP-497 AlterPartition",
        "A proposal with a leader epoch other than the present one is refused.",
        "A deposed leader changes the ISR of its successor.",
        "nonlinearizable-isr, illegal-transition, lost-write",
    )
    sender_epoch_compared: bool = protocol_rule(
        "KIP-631 fencing",
        "A proposal with a broker epoch other than its sender's registered one is refused.",
        "A dead incarnation of a leader changes the ISR of the live one.",
        "illegal-transition",
        beside="members_eligible, member_epochs_checked",
    )
    only_leader_alters: bool = protocol_rule(
        "KIP-497 AlterPartition",
        "Only the leader of a partition may propose its ISR.",
        "A broker changes the ISR of a partition that it does not lead.",
        "two-leaders",
        beside="leader_epoch_bumped, partition_epoch_compared",
    )
    members_eligible: bool = protocol_rule(
        "KIP-841 fenced members",
        "A replica that is fenced, not registered or shutting down does not join an ISR.",
        "An ISR has a member that cannot be elected or is shutting down.",
        "ineligible-member",
    )
    leader_from_isr: bool = protocol_rule(
        "Elections",
        "A leader is elected from the ISR.",
        "A replica without the committed records leads.",
        "two-leaders, lost-write",
    )
    leader_epoch_bumped: bool = protocol_rule(
        "Elections",
        "Every election begins a new leader epoch.",
        "Two brokers lead in one leader epoch.",
        "two-leaders, divergent-replicas, lost-write",
    )
    # The quorum (KIP-595).
    one_vote: bool = protocol_rule(
        "KIP-595 Vote",
        "A voter votes once in an epoch.",
        "Two controllers are elected in one epoch.",
        "two-leaders, metadata-divergence",
    )
    vote_synced: bool = protocol_rule(
        "KIP-595 Vote",
        "A vote is durable before it is answered.",
        "A voter votes again in the same epoch after a power cut.",
        "two-leaders, metadata-divergence",
    )
    vote_for_longest: bool = protocol_rule(
        "KIP-595 Vote",
        "A candidate whose log is behind the voter's does not get its vote.",
        "Committed metadata is lost with an election.",
        "metadata-divergence",
    )
    commit_by_majority: bool = protocol_rule(
        "KIP-595 high watermark",
        "A record is committed once a majority has it.",
        "A record that a single controller has counts as committed.",
        "metadata-divergence",
    )
    commit_in_own_epoch: bool = protocol_rule(
        "KIP-595 high watermark",
        "A leader commits records of earlier epochs only together with one of its own.",
        "A record that counted as committed is overwritten.",
        "metadata-divergence",
    )
    append_synced: bool = protocol_rule(
        "KIP-595 log",
        "A controller's copy of a record counts once it is durable.",
        "Committed metadata is gone after a power cut.",
        "metadata-divergence",
    )
    metadata_divergence_found: bool = protocol_rule(
        "KIP-595 Fetch",
        "A leader detects by the epochs where a fetcher's log diverges from its own.",
        "Two controllers hold different records at one offset.",
        "metadata-divergence",
    )
    stale_epoch_refused: bool = protocol_rule(
        "KIP-595 epochs",
        "Messages of an older epoch of the quorum are refused.",
        "Messages of a deposed leader still count.",
        "metadata-divergence, two-leaders",
    )
    replay_committed_only: bool = protocol_rule(
        "KIP-631 metadata",
        "A broker applies the metadata log only up to its high watermark.",
        "A broker acts on a record that was never committed.",
        "metadata-divergence, two-leaders, lost-write",
    )
    answer_after_commit: bool = protocol_rule(
        "KIP-631 controller",
        "A controller answers a request once its records are committed.",
        "An acknowledged write to the metadata is lost with its controller.",
        "lost-metadata-write, stale-read-after-write",
    )
    # Replication.
    high_watermark_of_maximal_isr: bool = protocol_rule(
        "KIP-497 maximal ISR",
        "The high watermark waits for the proposed members of the ISR, too.",
        "A replica that lacks a committed record joins the ISR, and may lead.",
        "unsafe-leader-candidate, lost-write",
    )
    growth_needs_high_watermark: bool = protocol_rule(
        "Replication",
        "A follower joins the ISR only once it has reached the high watermark.",
        "A replica that lacks committed records is in the ISR.",
        "unsafe-leader-candidate, lost-write",
    )
    growth_needs_epoch_start: bool = protocol_rule(
        "KAFKA-7128",
        "A follower joins the ISR only once it has reached the start of the leader epoch.",
        "While a new leader's high watermark is behind, a replica that lacks records joins.",
        "unsafe-leader-candidate, lost-write",
    )
    fetch_epoch_checked: bool = protocol_rule(
        "KIP-320 leader epochs",
        "A leader refuses a fetch with a leader epoch other than its own.",
        "A leader counts what a follower fetched in another leader epoch.",
        "divergent-replicas, lost-write, truncated-below-high-watermark, unsafe-leader-candidate",
    )
    answer_epoch_checked: bool = protocol_rule(
        "KIP-320 leader epochs",
        "A follower drops the response to a fetch of an earlier leader epoch.",
        "A follower appends what a deposed leader sends.",
        "divergent-replicas, lost-write, truncated-below-high-watermark, unsafe-leader-candidate",
    )
    truncate_by_epoch: bool = protocol_rule(
        "KIP-101 truncation",
        "A follower truncates its log where its leader epochs diverge from the leader's.",
        "Replicas hold different records at one offset.",
        "divergent-replicas, lost-write, truncated-below-high-watermark",
    )
    acks_all_waits: bool = protocol_rule(
        "Replication",
        "With acks=all the response waits for the high watermark.",
        "An acknowledged record is lost with its leader.",
        "lost-write",
    )
    min_isr_kept: bool = protocol_rule(
        "Replication",
        "With acks=all nothing is appended while the ISR is below min.insync.replicas.",
        "A record is acknowledged that fewer replicas have than was demanded.",
        "acknowledged-below-min-isr, lost-write",
    )
    consumer_below_high_watermark: bool = protocol_rule(
        "Replication",
        "Consumers read below the high watermark.",
        "A record that was read is lost afterwards.",
        "inconsistent-offset, lost-write, nonmonotonic-poll",
    )
    sequence_checked: bool = protocol_rule(
        "KIP-98 idempotence",
        "A leader appends each sequence number of a producer once.",
        "A retried record is in the log twice.",
        "duplicate",
    )
    producer_ids_unique: bool = protocol_rule(
        "KIP-98 idempotence",
        "No producer id is assigned twice.",
        "A producer's records are taken for another's retries and are never written.",
        "lost-write",
    )
    # Visibility of metadata.
    lowest_of_all: bool = protocol_rule(
        "Lowest acknowledged offset",
        "It is the minimum of the metadata offsets that unfenced brokers have acknowledged.",
        "A broker shows metadata that another one does not have yet.",
        "false-lowest-acknowledged-offset, nonrepeatable-read",
        level_min=3,
    )
    lowest_never_back: bool = protocol_rule(
        "Lowest acknowledged offset",
        "It never goes back: a broker is unfenced only once it has caught up.",
        "Metadata that was shown is hidden again.",
        "false-lowest-acknowledged-offset, session-went-back",
        level_min=3,
    )
    hidden_above_lowest: bool = protocol_rule(
        "Lowest acknowledged offset",
        "A broker hides metadata above the lowest acknowledged offset.",
        "Two reads through two brokers go back.",
        "nonrepeatable-read",
        level_min=3,
    )
    read_waits: bool = protocol_rule(
        "Lowest acknowledged offset",
        "A read waits until all that its broker had applied when it arrived may be shown.",
        "A broker that learns of the offset later shows less than another one did before.",
        "nonrepeatable-read, stale-read-after-write",
        level_min=3,
    )
    write_waits: bool = protocol_rule(
        "Lowest acknowledged offset",
        "A client's write is answered once every unfenced broker has applied it.",
        "A read after an acknowledged write does not show it.",
        "stale-read-after-write",
        level_min=3,
    )
    renegotiates_late: bool = protocol_rule(
        "Lowest acknowledged offset",
        "A broker offers the APIs of a new metadata.version once all have applied it.",
        "A broker offers an API that another one does not support yet.",
        "early-renegotiation",
        level_min=3,
        # A client learns of a broker's APIs by a read, which waits until all have applied them.
        beside="read_waits",
    )

    def without(self, *names: str) -> Self:
        """Return the rules with these switched off. Raises KeyError for an unknown name."""
        kept = {one.name: getattr(self, one.name) for one in fields(self)}
        for name in names:
            if name not in kept:
                raise KeyError(name)
            kept[name] = False
        return type(self)(**kept)


RULES: Final = tuple(ProtocolRule(name=one.name, **one.metadata) for one in fields(Rules))
"""All rules, in the order of their fields."""
