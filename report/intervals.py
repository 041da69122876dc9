"""The operations of a proof as intervals: a row a process, a bar from each call to its return.

Time runs to the right, and every two moments that differ stand apart, in their order: the order is
the point of the picture, and durations are written next to it. Bars that only touch are concurrent.
An operation that may take effect at any later time has an open end.

The operations are found by the bounds of the row groups: of a history of any length, only those
groups of the key that can hold them are read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.dataset as ds
from markupsafe import Markup

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.linearizability.operations import (
    Effect,
    Operation,
    columns_of,
    operations_of,
)
from fencepost.checkers.linearizability.words import in_words
from fencepost.checkers.proof import exact_seconds
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.znodes.operations import did, znodes_of
from fencepost.history.models import Model
from fencepost.report.notation import counted, length, moment
from fencepost.report.svg import CHARACTER, event_group, line, text

OPERATIONS_MAX: Final = 40
"""The bound on operations in a picture, the earliest ones: a longer proof is not read from it."""

_TOP: Final = 8.0
_ROW: Final = 42.0
_BAR: Final = 10.0
_MARGIN: Final = 18.0
_GAP: Final = 30.0
"""The least distance between two moments that differ."""
_FOOT: Final = 26.0
_CLOCK: Final = 66.0
"""The least distance between two times that are written out."""
_LOOKS: Final = {Effect.MUST: "ok", Effect.MAY: "info", Effect.REFUSED: "fail"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bar:
    """One operation of the picture."""

    operation: Operation
    process: int
    words: str

    @property
    def is_open(self) -> bool:
        return self.operation.end == OPEN_NS

    @property
    def width(self) -> float:
        """The width of its words."""
        return len(self.words) * CHARACTER + 12


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """The places of moments and processes."""

    x: dict[int, float]
    y: dict[int, float]
    right: float
    """The x at which open bars end."""
    width: float
    height: float


def picture_of(files: Sequence[Path], anomaly: Anomaly, model: Model) -> Markup | None:
    """Return the intervals of the anomaly's operations; None if they cannot be found or understood.

    `files`: those of `model_operations`.
    """
    wanted = anomaly.operations[:OPERATIONS_MAX]
    rows = model_rows_at(files, key=anomaly.key, indices=wanted)
    try:
        return draw_intervals(rows, model) if rows.num_rows else None
    except ValueError:
        # Rows that are no history of the model: the sentence of the anomaly says what is wrong.
        return None


def model_rows_at(files: Sequence[Path], *, key: str, indices: Sequence[int]) -> pa.Table:
    """Return the rows of a key with these indices, in their order, from a table of objects."""
    index = ds.field("index")
    # The bounds skip row groups by their statistics; `isin` alone reads them all.
    near = (ds.field("key") == key) & (index >= min(indices)) & (index <= max(indices))
    dataset = ds.dataset([str(path) for path in files], format="parquet")
    return dataset.to_table(filter=near & index.isin(list(indices))).sort_by("index")


def draw_intervals(rows: pa.Table, model: Model) -> Markup:
    """Return the picture of rows of MODEL_OPERATIONS or ZNODE_OPERATIONS.

    Raise ValueError if they are not of the model.
    """
    bars = _bars_of_znodes(rows) if model is Model.ZNODE else _bars(rows, model)
    layout = _layout(bars)
    parts = [
        *_processes(layout),
        *_clocks(bars, layout),
        *(_drawn(bar, layout) for bar in bars),
    ]
    return Markup(
        '<svg class="intervals" role="group" aria-label="{label}" '
        'xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" '
        'viewBox="0 0 {w:.0f} {h:.0f}">\n{parts}\n</svg>'
    ).format(
        label=f"When {counted(len(bars), 'operation')} of the proof took place",
        w=layout.width,
        h=layout.height,
        parts=Markup("\n").join(parts),
    )


def _bars(rows: pa.Table, model: Model) -> list[_Bar]:
    columns = columns_of(rows, model)
    processes = rows.column("process").take(pa.array(columns.row)).to_pylist()
    return [
        _Bar(operation=one, process=process, words=f"{one.index}: {in_words(one, model)}")
        for one, process in zip(operations_of(columns, model), processes, strict=True)
    ]


def _bars_of_znodes(rows: pa.Table) -> list[_Bar]:
    return [
        _Bar(
            operation=Operation(
                index=one.index,
                f=one.f,
                effect=Effect.MUST
                if one.is_ok
                else Effect.REFUSED
                if one.is_refused
                else Effect.MAY,
                call=one.call,
                end=one.end,
            ),
            process=one.process,
            words=f"{one.index}: {one.f} {did(one)}",
        )
        for one in znodes_of(rows)
    ]


def _layout(bars: Sequence[_Bar]) -> _Layout:
    processes = list(dict.fromkeys(bar.process for bar in bars))
    left = max(len(_name(process)) for process in processes) * CHARACTER + 2 * _MARGIN
    x = _moments(bars, left=left)
    right = max([*x.values(), *(x[bar.operation.call] + bar.width for bar in bars)]) + _GAP
    return _Layout(
        x=x,
        y={process: _TOP + (row + 0.7) * _ROW for row, process in enumerate(processes)},
        right=right,
        width=right + _MARGIN,
        height=_TOP + len(processes) * _ROW + _FOOT,
    )


def _moments(bars: Sequence[_Bar], *, left: float) -> dict[int, float]:
    """Return the x of each call and return, so that no words run into the next bar of a process."""
    moments = {bar.operation.call for bar in bars}
    moments |= {bar.operation.end for bar in bars if not bar.is_open}
    free: dict[int, float] = {}
    x: dict[int, float] = {}
    at = left - _GAP
    for now in sorted(moments):
        starting = [bar for bar in bars if bar.operation.call == now]
        at = max([at + _GAP, *(free.get(bar.process, 0.0) for bar in starting)])
        x[now] = at
        for bar in starting:
            free[bar.process] = at + bar.width
    return x


def _processes(layout: _Layout) -> Iterator[Markup]:
    for process, y in layout.y.items():
        yield line("life", x1=_MARGIN, y1=y, x2=layout.right, y2=y)
        yield text("process", _name(process), x=_MARGIN, y=y - _BAR)


def _name(process: int) -> str:
    return f"process {process}"


def _clocks(bars: Sequence[_Bar], layout: _Layout) -> Iterator[Markup]:
    """Yield a thread down from each moment, and its time where there is room for it."""
    first = min(layout.x)
    written = -_CLOCK
    bottom = layout.height - _FOOT
    highest = {
        at: min(
            layout.y[bar.process] for bar in bars if at in (bar.operation.call, bar.operation.end)
        )
        for at in layout.x
    }
    for at, x in layout.x.items():
        yield line("thread", x1=x, y1=highest[at], x2=x, y2=bottom)
        if x - written >= _CLOCK:
            words = moment(at) if at == first else f"+{length(at - first)}"
            yield text("clock", words, x=x, y=bottom + 16, anchor="middle")
            written = x


def _drawn(bar: _Bar, layout: _Layout) -> Markup:
    operation, y = bar.operation, layout.y[bar.process]
    start = layout.x[operation.call]
    end = layout.right if bar.is_open else layout.x[operation.end]
    body = Markup(
        '<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" rx="3"/>{ending}{words}'
    ).format(
        x=start - 1.5,
        y=y - _BAR / 2,
        w=max(end - start, 0.0) + 3,
        h=_BAR,
        ending=_open_end(end, y) if bar.is_open else "",
        words=text("words", bar.words, x=start, y=y - _BAR),
    )
    return event_group(_LOOKS[operation.effect], _details(bar), body)


def _open_end(x: float, y: float) -> Markup:
    """Return the open end of a bar whose operation was never seen to end."""
    return Markup('<path class="open" d="M{x:.1f} {y:.1f}l-7 -7v14z"/>').format(x=x + 9, y=y)


def _details(bar: _Bar) -> Iterator[str]:
    operation = bar.operation
    yield f"operation of {_name(bar.process)}, {bar.words}"
    yield f"called at {exact_seconds(operation.call)} s"
    if bar.is_open:
        yield "it may have taken effect at any time after that"
    else:
        took = length(operation.end - operation.call)
        yield f"returned at {exact_seconds(operation.end)} s, after {took}"
