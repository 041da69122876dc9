"""C1 nonlinearizable-isr: Changes of the ISR have no order that explains them.

The leader and ISR of a partition are a register whose versions are its partition epochs in the
metadata log. An AlterPartition is a compare-and-set (call: its request at the proxy; return: its
answer passed on), changes of the controller's own are writes without a caller, not before their
records' timestamps, and a describe shows a version that was there when it returned. There are
moments at which the versions appeared that all of it agrees with; every change that was
acknowledged stands in the log as it was acknowledged (an IsrChange: its ISR was in force); none is
answered by a later version than the one after the expected one (but where ZooKeeper has the
metadata); no version was made twice; every describe shows some version.

The operations of the register (`control_plane.versioned_register`):

- an AlterPartition is a compare-and-set that expects a partition epoch: called when its request
  arrived at the proxy, returned when its answer was passed on to the leader. Answered by the next
  epoch, it made that version; by a later one, it had to be refused. Answered by the epoch that it
  expected, it changed nothing: a read.
  Answered INVALID_UPDATE_VERSION, the epoch that it expected did not hold. With any other error, or
  unanswered as far as the leader saw, it may have happened. Never passed on, it has not;
- a change of the controller's own (fencing, election, reassignment) is a write without a caller;
- no version appears before the timestamp of its record, widened by what the clocks may differ;
- a describe is a read, but of a broker's cache, which is allowed to be behind: so it only says that
  its version existed when it returned. (How far behind is a matter of visibility.)

Answers that the log does not cover (it may end before them) are not compared.

A version in which a replica joins under an unchanged leader was made by a request: the controller
adds no replica on its own.

A controller on ZooKeeper grants what is so already, whatever epoch is expected
(`KafkaController.processAlterPartition`): a request that arrives twice is answered twice by the
epoch that it made. Such requests are reads there.

The cases are the AlterPartitions, and the IsrChanges of a generation that has those
(`granted_changes`). Describes and the controller's own changes only bear witness.

Meaning: A leader and its controller do not agree about who is in sync, so records count as
committed that are not.
Case: an AlterPartition or IsrChange that tells anything of its partition's ISR
Source: Herlihy and Wing 1990; KIP-497, KIP-903; `ReplicationControlManager.alterPartition`
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from fencepost.checkers.control_plane.granted_changes import granted_changes
from fencepost.checkers.control_plane.shown_versions import ShownVersions
from fencepost.checkers.control_plane.versioned_register import (
    ALWAYS,
    NEVER,
    Contradiction,
    OperationKind,
    RegisterOperation,
    contradiction,
)
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.metadata.isr_changes import (
    ISR_CHANGE,
    NO_REQUESTS,
    IsrRequests,
    Wish,
    made,
    proposals,
    repeated_wishes,
    requests_by_partition,
    wish,
)
from fencepost.checkers.metadata.partition_reads import NO_READS, PartitionReads, partition_reads
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
_REFUSED: Final = "INVALID_UPDATE_VERSION"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """An operation, and how it is known."""

    operation: RegisterOperation
    clause: Callable[[], Proof]
    """The operation as a clause of a proof; few of them are ever asked for."""


def nonlinearizable_isrs(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the operations on all ISRs. Reads `metadata_log`, `wire` and `describes`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    requests = requests_by_partition(streamed(tables, "wire"), seen.partitions)
    changes = requests_by_partition(streamed(tables, "wire"), seen.partitions, api=ISR_CHANGE)
    reads, until_ns = partition_reads(tables["describes"]), seen.known_until_ns
    for place, history in seen.partitions.items():
        mine, asked = requests.get(place, NO_REQUESTS), changes.get(place, NO_REQUESTS)
        granted = list(granted_changes(history, asked, seen, until_ns=until_ns))
        proofs = [*_proofs(history, mine, reads.get(place, NO_READS), seen), *filter(None, granted)]
        cases = _judged_count(history, mine, until_ns=until_ns) + len(granted)
        yield history.key, spelled(NAME, history.key, proofs, cases=cases)


def _judged_count(history: PartitionHistory, requests: IsrRequests, *, until_ns: int) -> int:
    """Return how many requests say anything that another one, or the log, could contradict."""
    places = history.by_epoch()
    return sum(
        made(rpc) is not None or _operation(rpc, places, until_ns=until_ns) is not None
        for rpc in requests
        if rpc.reached_ns is not None
    )


def _proofs(
    history: PartitionHistory,
    requests: IsrRequests,
    reads: PartitionReads,
    seen: MetadataView,
) -> Iterator[Proof]:
    repeated = repeated_wishes(requests, seen.facts)
    yield from _made_twice(history, requests, repeated)
    yield from _not_in_the_log(history, requests, seen)
    if not (seen.facts.on_zookeeper or seen.facts.migrating):
        yield from _not_the_next(history, requests)
    shown, until_ns = ShownVersions(history), seen.known_until_ns
    yield from _never_was(history, shown, reads, until_ns=until_ns)
    told = [
        *_appended(history, seen.facts),
        *_asked(history, requests, repeated, until_ns=until_ns),
        *_described(shown, reads),
    ]
    found = contradiction(
        [one.operation for one in told],
        version_count=len(history.versions),
        called=_called(history, requests),
    )
    if found is not None:
        yield _out_of_time(history, told, found)


def _appended(history: PartitionHistory, facts: Facts) -> Iterator[_Told]:
    """No version is there before its record was appended."""
    for place, version in enumerate(history.versions):
        if version.cause is Cause.SNAPSHOT:
            continue
        earliest = facts.earliest_ns(version.timestamp_ms)
        yield _Told(
            operation=RegisterOperation(kind=OperationKind.WRITE, version=place, call=earliest),
            clause=partial(
                Proof.of,
                "the controller appended it at metadata offset {appended_offset}, not before "
                "{appended}",
                metadata_offsets={"appended_offset": version.metadata_offset},
                times={"appended": earliest},
                sources={"appended": "appended_offset"},
            ),
        )


def _asked(
    history: PartitionHistory, requests: IsrRequests, repeated: frozenset[Wish], *, until_ns: int
) -> Iterator[_Told]:
    places = history.by_epoch()
    for rpc in requests:
        operation = _operation(rpc, places, until_ns=until_ns, is_repeated=wish(rpc) in repeated)
        if operation is not None and rpc.reached_ns is not None:
            yield _Told(operation=operation, clause=partial(_asked_clause, rpc, operation))


def _asked_clause(rpc: Rpc, operation: RegisterOperation) -> Proof:
    is_answered = operation.end != NEVER
    return Proof.of(
        "{source} asked for ISR {isr} expecting partition epoch {expected} at {asked} (frame "
        "{frame})" + (" and was answered {error} at {answered}" if is_answered else ""),
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
        times={"asked": rpc.asked_ns, "answered": operation.end if is_answered else None},
        sources=dict.fromkeys(("isr", "expected", "asked", "source"), "frame")
        | dict.fromkeys(("answered", "error"), "answer_frame"),
        source=rpc.source,
        isr=list(rpc.of("isr") or ()),
        expected=rpc.of("partition_epoch"),
        **(dict[str, Any](error=rpc.error) if is_answered else {}),
    )


def _operation(
    rpc: Rpc, places: Mapping[int, int], *, until_ns: int, is_repeated: bool = False
) -> RegisterOperation | None:
    """Return what this request says of the register; None if it says nothing.

    A refusal after the end of the log may be due to a version that the log does not have.
    `is_repeated`: another request may have made the version.
    """
    expected, epoch = rpc.of("partition_epoch"), rpc.answered("partition_epoch")
    returned = rpc.returned_ns
    end = NEVER if returned is None else returned
    if rpc.ok and epoch in places:
        changes = made(rpc) is not None and not is_repeated
        kind = OperationKind.SWAP if changes else OperationKind.READ
        # A state that the leader was never told is no read of its.
        if kind is OperationKind.READ and returned is None:
            return None
        return RegisterOperation(kind=kind, version=places[epoch], call=rpc.asked_ns, end=end)
    if rpc.error == _REFUSED and end < until_ns and expected in places:
        version = places[expected]
        return RegisterOperation(
            kind=OperationKind.REFUSED, version=version, call=rpc.asked_ns, end=end
        )
    if not rpc.ok and rpc.error != _REFUSED and expected in places:
        return RegisterOperation(
            kind=OperationKind.CRASHED, version=places[expected], call=rpc.asked_ns
        )
    return None


def _called(history: PartitionHistory, requests: IsrRequests) -> frozenset[int]:
    """Return the versions that requests without a known answer made, and no granted one."""
    if any(rpc.of("action") == "duplicated" for rpc in requests):
        return frozenset()
    return frozenset(
        place + 1
        for place, (before, version) in enumerate(history.steps())
        if version.leader == before.leader and set(version.isr) - set(before.isr)
        if (made_by := proposals(version, requests)).possible and not made_by.sure
    )


def _described(shown: ShownVersions, reads: PartitionReads) -> Iterator[_Told]:
    """Of all reads of a version, the first to return bounds when it was there."""
    for version, row in shown.first_reads(reads):
        state, returned = reads.shown(row), int(reads.return_ns[row])
        yield _Told(
            operation=RegisterOperation(
                kind=OperationKind.READ, version=version, call=ALWAYS, end=returned
            ),
            clause=partial(
                Proof.of,
                "{node} showed leader {leader} and ISR {isr} in a describe that returned at "
                "{returned} (read {read})",
                times={"returned": returned},
                node=reads.node[row],
                leader=state.leader,
                isr=list(state.isr or ()),
                read=int(reads.read[row]),
            ),
        )


def _never_was(
    history: PartitionHistory, shown: ShownVersions, reads: PartitionReads, *, until_ns: int
) -> Iterator[Proof]:
    """Find describes of what no version ever was."""
    for row in shown.of_no_version(reads):
        state, return_ns = reads.shown(row), int(reads.return_ns[row])
        if return_ns < until_ns:
            yield Proof.of(
                "{node} showed {key} with leader {leader}, leader epoch {leader_epoch} and "
                "ISR {isr} in a describe that returned at {return_} (read {read}), and "
                "no version in the metadata log was that",
                values={"read": int(reads.read[row])},
                times={"return_": return_ns},
                node=reads.node[row],
                key=history.key,
                leader=state.leader,
                leader_epoch=state.leader_epoch,
                isr=list(state.isr or ()),
            )


def _made_twice(
    history: PartitionHistory, requests: IsrRequests, repeated: frozenset[Wish]
) -> Iterator[Proof]:
    """Find two compare-and-sets that say they made the same version."""
    by_epoch: dict[int, list[Rpc]] = {}
    # Both copies of a request that the proxy duplicated have the same answer.
    for rpc in {one.answer_frame: one for one in requests}.values():
        epoch = made(rpc)
        if epoch is not None:
            by_epoch.setdefault(epoch, []).append(rpc)
    for epoch, makers in by_epoch.items():
        first = {wish(rpc) for rpc in makers if rpc.of("partition_epoch") == epoch - 1} & repeated
        if len(first) + sum(wish(rpc) not in repeated for rpc in makers) > 1:
            frames = [Proof.of("{frame}", frames={"frame": rpc.frame}) for rpc in makers]
            yield Proof.of(
                "partition epoch {epoch} of {key} was the answer to {makers_count} "
                "AlterPartition requests that each expected an earlier one: frames {frames_of_all}",
                values={"epoch": epoch},
                key=history.key,
                makers_count=len(makers),
                frames_of_all=Proof.joined(", ", frames),
            )


def _not_the_next(history: PartitionHistory, requests: IsrRequests) -> Iterator[Proof]:
    """Find compare-and-sets that made a version though the one that they expected was gone."""
    for rpc in requests:
        epoch = made(rpc)
        if epoch is not None and epoch > rpc.of("partition_epoch") + 1:
            yield Proof.of(
                "{source} asked for ISR {isr} of {key} expecting partition epoch {expected} at "
                "{asked} (frame {frame}), and was answered by partition epoch {epoch}: the one "
                "that it expected was in force no more",
                values={"expected": rpc.of("partition_epoch"), "epoch": epoch},
                frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
                times={"asked": rpc.asked_ns},
                sources=dict.fromkeys(("source", "isr", "expected", "asked"), "frame")
                | {"epoch": "answer_frame"},
                source=rpc.source,
                isr=list(rpc.of("isr") or ()),
                key=history.key,
            )


def _not_in_the_log(
    history: PartitionHistory, requests: IsrRequests, seen: MetadataView
) -> Iterator[Proof]:
    """Find acknowledged changes that the log does not have, or has with another ISR."""
    counts = Counter(version.partition_epoch for version in history.versions)
    places = history.by_epoch()
    until_ns = seen.known_until_ns
    for rpc in requests:
        epoch, answered_ns = made(rpc), rpc.answered_ns
        if epoch is None or answered_ns is None or answered_ns >= until_ns or counts[epoch] > 1:
            continue
        version = history.versions[places[epoch]] if epoch in places else None
        # With an error, its other fields say nothing.
        isr = rpc.answered("isr") if rpc.ok else None
        if version is None and (epoch < history.versions[0].partition_epoch or history.deleted):
            continue
        if version is not None and (isr is None or set(isr) == set(version.isr)):
            continue
        found = "has no such version" if version is None else "has ISR {isr} there"
        there: dict[str, Any] = {} if version is None else {"isr": version.isr_text}
        yield Proof.of(
            "{target} acknowledged ISR {acknowledged_isr} at partition epoch {epoch} of {key} to "
            "{source} at {answered} (frame {answer_frame}), and the metadata log, which "
            "goes on until {until}, " + found,
            metadata_offsets={"metadata_offset": version.metadata_offset if version else None},
            values={"epoch": epoch},
            frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
            times={"answered": answered_ns, "until": until_ns},
            sources=dict.fromkeys(("answered", "acknowledged_isr", "epoch"), "answer_frame")
            | {"isr": "metadata_offset"},
            target=rpc.target,
            acknowledged_isr=list(rpc.of("isr") or () if isr is None else isr),
            key=history.key,
            source=rpc.source,
            **there,
        )


def _out_of_time(history: PartitionHistory, told: Sequence[_Told], found: Contradiction) -> Proof:
    early, late = told[found.early], told[found.late]
    first = history.versions[found.early_version]
    last = history.versions[found.late_version]
    return Proof.of(
        "partition epoch {partition_epoch} of {key} cannot have appeared before "
        "{bound} ({early}), and partition epoch {last_partition_epoch} had appeared "
        "before that ({late})",
        metadata_offsets=tuple(dict.fromkeys((first.metadata_offset, last.metadata_offset))),
        values={
            "partition_epoch": first.partition_epoch,
            "last_partition_epoch": last.partition_epoch,
        },
        times={"bound": found.bound},
        key=history.key,
        early=early.clause(),
        late=late.clause(),
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=nonlinearizable_isrs,
        split=Split.PARTITIONS,
        tables=("metadata_log", "wire", "describes"),
    ),
)
