"""L1 refused-but-running: A broker that was refused goes on.

The registration of an incarnation was refused, and it sent a heartbeat or an AlterPartition before
it tried again; none of its tries was accepted or left unanswered. All that it sent of one kind,
under one broker epoch and with one answer, is one finding.

Without a broker epoch a broker has no identity: until it is registered it may only try again. An
incarnation of which some try was accepted, or was never answered, may be registered.

Heartbeats do not name the incarnation. A frame is the refused one's if it came from the same node
on a connection that was accepted no earlier than that of the refused registration: connections are
numbered in that order, and an earlier process of the node was dead when this one started.

Meaning: A broker that is not registered takes part.
Case: a refusal of a registration
Source: KIP-631, "Broker registration"; `BrokerLifecycleManager`
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import repeat
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.exchanges import CORRELATION
from fencepost.checkers.metadata.frames import TapeRow
from fencepost.checkers.metadata.rpcs import Rpc, Rpcs, rpcs
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.NODE,
    culprit=("{api}:broker→controller", "after-{error}"),
    rests_on=("whole-tape",),
    needs=("wire",),
)
NAME: Final = ENTRY.name
_WORKS: Final = ("BrokerHeartbeat", "AlterPartition")


class _Kind(NamedTuple):
    """The kind of something that a refused incarnation sent."""

    incarnation_id: str
    api: str
    broker_epoch: int
    answer: str | None


def refused_but_running(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Yield the findings on what refused incarnations did, by node. Reads `wire`."""
    wire = streamed(tables, "wire")
    registrations = _by_source(wire, "BrokerRegistration")
    works = _by_source(_after_refusals(wire, registrations), *_WORKS)
    for node, mine in sorted(registrations.items()):
        yield node, counted(NAME, node, _judged(mine, works.get(node, mine[:0])))


def _by_source(wire: Source, *apis: str) -> dict[str, Rpcs]:
    asked = rpcs(wire, *apis)
    first = asked.where(pc.equal(asked.of("item"), 0))
    return {source: several for (source,), several in first.by("source").items()}


def _after_refusals(wire: Source, registrations: Mapping[str, Rpcs]) -> Source:
    """Return the frames of connections on which a node sent anything after a refusal.

    A night has half a million heartbeats of a broker, and nearly none of these.
    """
    refused = {node: _refusal_times(mine) for node, mine in registrations.items()}
    found: set[int] = set()
    for batch in wire((*TapeRow._fields, CORRELATION)):  # as a slice of the tape is kept
        asked = batch.filter(
            pc.and_(
                pc.is_in(batch.column("api"), pa.array(_WORKS)),
                pc.equal(batch.column("direction"), "request"),
            )
        )
        for node, (begin_ns, end_ns) in refused.items():
            mine = asked.filter(pc.equal(asked.column("source"), node))
            time_ns = mine.column("time_ns").to_numpy()
            place = np.searchsorted(begin_ns, time_ns, side="right") - 1
            after = (place >= 0) & (time_ns <= end_ns[place])
            found |= set(mine.column("connection").to_numpy()[after].tolist())
    kept = pa.array(sorted(found), pa.int64())
    return lambda columns: (
        batch.filter(pc.is_in(batch.column("connection"), kept)) for batch in wire(columns)
    )


def _refusal_times(registrations: Rpcs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when refusals were returned, and by when the next try or one behind it was asked."""
    spans = sorted(
        (rpc.returned_ns, until_ns)
        for rpc, until_ns in _until_next_try(registrations)
        if not rpc.ok and rpc.returned_ns is not None
    )
    begin_ns, end_ns = np.array([*spans, (OPEN_NS, OPEN_NS)], dtype=np.int64).T
    return begin_ns, np.maximum.accumulate(end_ns)


def _until_next_try(registrations: Rpcs) -> Iterator[tuple[Rpc, int]]:
    """Yield each try of a node with when the next one was asked; OPEN_NS with the last."""
    return zip(registrations, [*registrations.asked_ns[1:].tolist(), OPEN_NS], strict=True)


def _judged(registrations: Rpcs, works: Rpcs) -> Iterator[Proof | None]:
    """Yield the findings, and None for every other refusal."""
    registered: set[str] = set()
    refusals = 0
    kinds: dict[_Kind, list[tuple[Rpc, Rpc]]] = {}
    for rpc, until_ns in _until_next_try(registrations):
        incarnation = rpc.of("incarnation_id")
        if rpc.ok or (rpc.response is None and rpc.reached_ns is not None):
            registered.add(incarnation)
        if incarnation in registered or rpc.response is None or rpc.returned_ns is None:
            continue
        refusals += 1
        for work in works.asked_between(rpc.returned_ns, until_ns):
            if work.connection >= rpc.connection:
                kind = _Kind(incarnation, work.api, work.of("broker_epoch"), work.error)
                kinds.setdefault(kind, []).append((rpc, work))
    yield from (_proof(*several[0], works=several) for several in kinds.values())
    yield from repeat(None, max(0, refusals - len(kinds)))


def _proof(refused: Rpc, work: Rpc, *, works: Sequence[tuple[Rpc, Rpc]]) -> Proof:
    """Return the proof by the first of its kind; `works`: all, each with the refusal before it."""
    proof = Proof.of(
        "{target} refused to register incarnation {incarnation_id} of {source} with {error} at "
        "{returned} (frame {frame}), and without another try it sent a {api} with broker epoch "
        "{broker_epoch} at {asked} (frame {work_frame}), which was answered with {answer}",
        frames={"frame": refused.frame, "work_frame": work.frame},
        times={"returned": refused.returned_ns or 0, "asked": work.asked_ns},
        sources=dict.fromkeys(("incarnation_id", "target", "error", "returned"), "frame")
        | dict.fromkeys(("broker_epoch", "api", "asked", "answer"), "work_frame"),
        target=refused.target,
        incarnation_id=refused.of("incarnation_id"),
        source=refused.source,
        error=refused.error,
        api=work.api,
        broker_epoch=work.of("broker_epoch"),
        answer=work.error or "nothing",
    )
    if len(works) == 1:
        return proof
    last = works[-1][1]
    return proof.further(
        "; {further_count} more of its kind followed, the last at {last_asked} (frame "
        "{last_frame})",
        frames={"last_frame": last.frame},
        times={"last_asked": last.asked_ns},
        sources={"last_asked": "last_frame"},
        further_count=len(works) - 1,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=refused_but_running,
        split=Split.BROKERS,
        apis=("BrokerRegistration", "BrokerHeartbeat", "AlterPartition"),
    ),
)
