"""The times without a fault, by the journal of faults.

A fault lasts from before it was begun until its heal was seen to work, or to the end of the run.
The beginning of the run counts as the end of one: the cluster has just been started. A fault whose
effect was never seen may have had one, and counts like the others.

Where the controller tells brokers by requests, one at a time, a request that a broker does not
answer for a while is no quiet either: on a busy machine they wait for seconds, and the broker knows
nothing of what comes behind.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.exchanges import BY_PROXY
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source
from fencepost.checkers.spans import Span

CONTROLLER_REQUESTS: Final = ("LeaderAndIsr", "StopReplica", "UpdateMetadata")
"""The requests by which a controller on ZooKeeper tells brokers."""
_LONG_NS: Final = 500_000_000
"""At a load of 30 to 60, on two cores, the median answer took a tenth of that."""
_IDS, _TIME, _IS_ANSWER = 3, 3, 4
"""Of the columns of frames: the count of ids, which come first, and the places of the others."""
_NO_FRAMES: Final = np.empty((0, 5), dtype=np.int64)
_SEEN: Final = ("api", "connection", "correlation_id", "time_ns", "direction", "action")


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """The faults of a run, by their beginnings."""

    begin_ns: NDArray[np.int64]
    end_ns: NDArray[np.int64]
    """The end of the last to end among a fault and those that began before it."""

    def since_ns(self, until_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return since when nothing was broken, at each of these times; OPEN_NS if something is."""
        begun = np.searchsorted(self.begin_ns, until_ns, side="right")
        ended_ns = np.concatenate([np.zeros(1, dtype=np.int64), self.end_ns])[begun]
        since_ns: NDArray[np.int64] = np.where(ended_ns <= until_ns, ended_ns, OPEN_NS)
        return since_ns


def quiet(faults: pa.Table, waits: Iterable[Span] = ()) -> Quiet:
    """Return the quiet times out of FAULTS. `waits`: times that are none either."""
    rows = faults.select(["begin_ns", "end_ns"]).to_pylist()
    spans = [(row["begin_ns"], OPEN_NS if row["end_ns"] is None else row["end_ns"]) for row in rows]
    spans = sorted([*spans, *((one.from_ns, one.until_ns) for one in waits)])
    ends = np.array([end_ns for _, end_ns in spans], dtype=np.int64)
    return Quiet(
        begin_ns=np.array([begin_ns for begin_ns, _ in spans], dtype=np.int64),
        end_ns=np.maximum.accumulate(ends),
    )


def long_waits(wire: Source) -> Sequence[Span]:
    """Return when a request of a controller on ZooKeeper waited long for its broker's answer.

    None of KRaft's is such a request: its brokers fetch what they are to know.
    """
    # As numbers: a night has half a million of them, with items in each.
    frames = np.concatenate([*_controller_frames(wire), _NO_FRAMES])
    frames = frames[np.lexsort(frames.T[::-1])]
    now, after = frames[:-1], frames[1:]
    same = np.all(now[:, :_IDS] == after[:, :_IDS], axis=1)
    answered = same & (now[:, _IS_ANSWER] == 0) & (after[:, _IS_ANSWER] == 1)
    long = answered & (after[:, _TIME] - now[:, _TIME] >= _LONG_NS)
    return [
        Span(from_ns=from_ns, until_ns=until_ns)
        for from_ns, until_ns in zip(
            now[long, _TIME].tolist(), after[long, _TIME].tolist(), strict=True
        )
    ]


def _controller_frames(wire: Source) -> Iterator[NDArray[np.int64]]:
    """Yield the frames of such requests and of the answers to them, (n, 5); items as they come.

    Answers that the proxy made up are left out. Sorted, a request has its answer behind it, if one
    came before the next request of its ids.
    """
    wanted = pa.array(CONTROLLER_REQUESTS)
    for batch in wire(_SEEN):
        rows = batch.filter(pc.is_in(batch.column("api"), wanted))
        is_answer = pc.not_equal(rows.column("direction"), "request")
        made_up = pc.and_(is_answer, pc.equal(rows.column("action"), BY_PROXY))
        kept = rows.append_column("is_answer", is_answer).filter(pc.invert(made_up))
        columns = (
            pc.index_in(kept.column("api"), wanted),
            *(kept.column(name) for name in ("connection", "correlation_id", "time_ns")),
            kept.column("is_answer"),
        )
        numbers = (pc.fill_null(one.cast(pa.int64()), -1).to_numpy() for one in columns)
        yield np.column_stack(list(numbers))
