"""The places of everything in a scene: time downwards in rows, nodes and witnesses as columns.

Rows follow one another in time, and a row is as high as what stands on it, not as long as it took:
where nothing happens the picture is short, and says how long nothing happened. Things that happen
at once in different columns share a row.
"""

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from fencepost.report.arrows import Arrow, ArrowFate
from fencepost.report.metadata_notes import DecisionNote
from fencepost.report.performed import PerformedStep
from fencepost.report.sequence import SequenceScene

TIME_RIGHT: Final = 62.0
NOTES_WIDTH: Final = 256.0
"""The room for the words of a decision."""
HEAD: Final = 46.0
"""The room for the names of the nodes."""

_NOTES_LEFT: Final = 106.0
_FIRST_LINE: Final = 412.0
_DIGITS: Final = 4
_DIGIT: Final = 7.6
"""There is room for an offset of so many digits of this width; longer ones, such as zxids, move all
that stands behind them."""
_STEPS_WIDTH: Final = 250.0
_WIDTH: Final = 1128.0
"""The width that a page has room for; more nodes than fit make it wider."""
_GAP_MIN: Final = 104.0
_GAP_MAX: Final = 250.0
_SAME_NS: Final = 15_000_000
_ROW: Final = 22.0
_ARROW_ROW: Final = 29.0
_PILL: Final = 17.0
_NAMES_ROW: Final = 40.0
_ROWS_BETWEEN_NAMES: Final = 24
_PAUSE_NS: Final = 1_000_000_000
_PAUSE_ROW: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The end of an arrow that arrived long after it was sent."""

    arrow: Arrow
    time_ns: int


Event = Arrow | Arrival | DecisionNote | PerformedStep


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneRow:
    """The events of one moment."""

    y: float
    time_ns: int
    pause_ns: int
    """The time for which nothing had happened, if it is long enough to be named; else 0."""
    pause_y: float
    """The y at which that pause is named."""
    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnPlaces:
    """The x of the words of decisions, of the lines of the nodes and of the steps."""

    notes: float
    lines: Mapping[str, float]
    steps: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneLayout:
    """The picture's measures."""

    columns: ColumnPlaces
    rows: tuple[SceneRow, ...]
    names_at: tuple[float, ...]
    """The y at which the names are repeated."""
    height: float

    def row_of(self, event: Event) -> SceneRow:
        """Return the row on which the event stands."""
        return next(row for row in self.rows if event in row.events)

    def y(self, time_ns: int) -> float:
        """Return the y of a time, between the rows around it."""
        times = [row.time_ns for row in self.rows]
        place = bisect_right(times, time_ns)
        if place == 0:
            return HEAD - 11
        if place == len(times):
            return self.rows[-1].y + _ROW / 2
        above, below = self.rows[place - 1], self.rows[place]
        share = (time_ns - above.time_ns) / (below.time_ns - above.time_ns)
        # Not quite down to the next row, whose event comes later.
        return above.y + share * (below.y - above.y)


def layout_of(scene: SequenceScene) -> SceneLayout:
    """Return the layout of the scene, every event on a row."""
    columns = _columns(scene)
    rows = _Rows()
    for event in sorted(_events(scene), key=_order):
        rows.add(event)
    placed = rows.done()
    return SceneLayout(
        columns=columns, rows=placed, names_at=tuple(rows.names_at), height=rows.y + 2 * HEAD
    )


def _columns(scene: SequenceScene) -> ColumnPlaces:
    digits = max((len(str(offset)) for offset in scene.metadata_offsets), default=0)
    moved = max(0, digits - _DIGITS) * _DIGIT
    first = _FIRST_LINE + moved
    gaps = max(1, len(scene.nodes) - 1)
    gap = (_WIDTH - first - _STEPS_WIDTH) / gaps
    gap = min(_GAP_MAX, max(_GAP_MIN, gap))
    lines = {node: first + place * gap for place, node in enumerate(scene.nodes)}
    last = max(lines.values(), default=first)
    return ColumnPlaces(
        notes=_NOTES_LEFT + moved,
        lines=lines,
        steps=last + 30,
        width=last + 30 + _STEPS_WIDTH,
    )


def _events(scene: SequenceScene) -> list[Event]:
    arrivals = [
        Arrival(arrow=arrow, time_ns=arrow.arrived_ns)
        for arrow in scene.arrows
        if arrow.fate is ArrowFate.LATE and arrow.arrived_ns is not None
    ]
    return [*scene.steps, *scene.arrows, *arrivals, *scene.notes]


def _time(event: Event) -> int:
    return event.sent_ns if isinstance(event, Arrow) else event.time_ns


def _order(event: Event) -> tuple[int, int]:
    """Return the sort key at one time: the step, what it let go, statements, and then decisions."""
    kinds = (PerformedStep, Arrival, Arrow, DecisionNote)
    return _time(event), kinds.index(type(event))


_COLUMN: Final = {PerformedStep: 2, Arrival: 1, Arrow: 1, DecisionNote: 0}


@dataclass(slots=True)
class _Rows:
    """The rows as they grow; `y` is where the last one stands."""

    y: float = HEAD
    names_at: list[float] = field(default_factory=list)
    _rows: list[SceneRow] = field(default_factory=list)
    _open: list[Event] = field(default_factory=list)
    _time_ns: int = 0
    _pause_ns: int = 0
    _pause_y: float = 0.0
    _pill: bool = False

    def add(self, event: Event) -> None:
        time_ns = _time(event)
        taken = {_COLUMN[type(other)] for other in self._open}
        at_once = time_ns - self._time_ns <= _SAME_NS
        if self._open and at_once and _COLUMN[type(event)] not in taken:
            # An arrow needs room above it that a lone note has not taken.
            if _COLUMN[type(event)] == 1:
                self.y += _ARROW_ROW - _ROW
            self._open.append(event)
            return
        self._close()
        self._begin(event, time_ns)

    def done(self) -> tuple[SceneRow, ...]:
        self._close()
        return tuple(self._rows)

    def _begin(self, event: Event, time_ns: int) -> None:
        above = self.y
        gap_ns = time_ns - self._rows[-1].time_ns if self._rows else 0
        self._pause_ns = gap_ns if gap_ns >= _PAUSE_NS else 0
        if self._rows and len(self._rows) % _ROWS_BETWEEN_NAMES == 0:
            self.y += _NAMES_ROW
            self.names_at.append(self.y - 8)
        self.y += _ARROW_ROW if _COLUMN[type(event)] == 1 else _ROW
        self.y += (_PAUSE_ROW if self._pause_ns else 0) + (_PILL if self._pill else 0)
        self._pause_y = (above + self.y) / 2
        self._time_ns = time_ns
        self._open = [event]

    def _close(self) -> None:
        if self._open:
            row = SceneRow(
                y=self.y,
                time_ns=self._time_ns,
                pause_ns=self._pause_ns,
                pause_y=self._pause_y,
                events=tuple(self._open),
            )
            self._rows.append(row)
            self._pill = any(isinstance(e, Arrow) and e.rule is not None for e in self._open)
        self._open = []
