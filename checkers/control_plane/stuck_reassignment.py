"""C22 stuck-reassignment: A move of replicas does not end though nothing keeps it from that.

For longer than the scenario's bound a partition has replicas that are being added or removed, the
same ones; all that time its leader, its leader epoch and the leader of the quorum stay the same,
the brokers of the leader and of all replicas that are to stay are registered, unfenced and not in
controlled shutdown, and no fault is in effect but the end or standstill of another process. Unknown
if the run ends before the bound has passed.

A move that was begun ends when the replicas that are added are in the ISR. They fetch from the
leader, catch up, and are let in, as any replica that is out (stuck-replica), and for as long as the
scenario gives one to come back when nothing is broken (`recovery_limit`).

A replica that is to go may be gone already. `checkers.metadata.absences` says which faults the
brokers, or who decides, may depend on.

`stuck-replica` leaves out every replica that is being added or removed, and `lost-reassignment`
asks only whether a move began. Where the run ends before the bound has passed, a move under way
that has had nothing broken for longer than `SETTLED_NS` is a doubt.

Meaning: An administrator waits in vain for a move, and the broker that was to be emptied keeps its
replicas.
Case: a move that ended, or one for which the bound passed
Source: KIP-455; Kafka's `PartitionReassignmentReplicas`, and `KafkaController` for ZooKeeper
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from fencepost.checkers.control_plane.stuck_isr import SETTLED_NS
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.absences import Calm, calm_of
from fencepost.checkers.metadata.moves import PlacementVersion, placements
from fencepost.checkers.metadata.partition_states import NO_LEADER, PartitionHistory
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.spans import FOREVER_NS, Span, common
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """A stretch in which a move was under way and nothing kept it from ending."""

    last: PlacementVersion
    span: Span
    at_the_end: bool
    """It lasted until the end of what is known."""


def stuck_reassignments(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the moves of every partition. Reads `metadata_log` and `faults`."""
    limit_ns = seen.facts.stuck_isr_limit_ns
    if not limit_ns:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    when = calm_of(tables, seen)
    placed = placements(seen.histories(), seen.log.records)
    for history in seen.histories():
        mine = placed[history.topic_id, history.partition]
        waits = list(_waits(history, mine, when))
        late = [one for one in waits if one.span.length_ns > limit_ns]
        over = sum(before.moves and not after.moves for before, after in pairwise(mine))
        open_ = (one for one in waits if one.at_the_end and one.span.length_ns > SETTLED_NS)
        doubts = (_out(history, one).sentence for one in open_ if one not in late)
        doubt = next(doubts, "")
        yield (
            history.key,
            spelled(
                NAME,
                history.key,
                [_proof(history, one, seen.facts) for one in late],
                cases=over + len(late),
                doubt=doubt and f"{doubt}, where the run ended before the bound had passed",
            ),
        )


def _waits(
    history: PartitionHistory, placed: Sequence[PlacementVersion], when: Calm
) -> Iterator[_Wait]:
    decided_ns = FOREVER_NS
    if history.decided_until_ms is not None:
        decided_ns = when.facts.earliest_ns(history.decided_until_ms)
    for run in _runs(placed):
        following = next(
            (one for one in placed if one.metadata_offset > run[-1].metadata_offset), None
        )
        next_ns = (
            FOREVER_NS if following is None else when.facts.earliest_ns(following.timestamp_ms)
        )
        from_ns, until_ns = when.facts.latest_ns(run[0].timestamp_ms), min(next_ns, decided_ns)
        if from_ns >= until_ns:
            continue
        leader = run[0].leader
        others = {*run[0].target, *run[0].adding} - {leader}
        calm = [when.of_pair(leader, one) for one in sorted(others)]
        alone = [when.acting(leader), when.eligible.get(leader, ())]
        for span in common([Span(from_ns=from_ns, until_ns=until_ns)], *alone, *calm):
            yield _Wait(last=run[-1], span=span, at_the_end=span.until_ns == when.end_ns)


def _runs(placed: Sequence[PlacementVersion]) -> Iterator[list[PlacementVersion]]:
    """Yield the states of each move, as long as it and its leader stay the same."""
    run: list[PlacementVersion] = []
    for one in placed:
        if run and not _goes_on(run[-1], one):
            yield run
            run = []
        if one.moves and one.leader != NO_LEADER:
            run.append(one)
    if run:
        yield run


def _goes_on(one: PlacementVersion, other: PlacementVersion) -> bool:
    return (one.leader, one.leader_epoch, {*one.adding}, {*one.removing}) == (
        *(other.leader, other.leader_epoch, {*other.adding}, {*other.removing}),
    )


def _out(history: PartitionHistory, wait: _Wait) -> Proof:
    last, span = wait.last, wait.span
    return Proof.of(
        "{key} moves to {target} ({adding} being added, {removing} being removed, ISR {isr}, "
        "leader {leader}, metadata offset {metadata_offset}) from {since} until {until}",
        metadata_offsets={"metadata_offset": last.metadata_offset},
        times={"since": span.from_ns, "until": span.until_ns},
        sources=dict.fromkeys(("target", "adding", "removing"), "metadata_offset"),
        key=history.key,
        target=list(last.target),
        adding=list(last.adding),
        removing=list(last.removing),
        isr=list(last.isr),
        leader=last.leader,
    )


def _proof(history: PartitionHistory, wait: _Wait, facts: Facts) -> Proof:
    return _out(history, wait).further(
        "; all that time nothing that it depends on was broken, and the bound is {limit}",
        durations={"limit": facts.stuck_isr_limit_ns},
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stuck_reassignments,
        split=Split.PARTITIONS,
        tables=("metadata_log", "faults"),
    ),
)
