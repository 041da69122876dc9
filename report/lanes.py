"""The plots of lanes: the faults, a lane a target, and the windows, a lane a kind.

A fault is a bar, with the shown anomalies below. A window is a bar, too, with a mark where a strike
took effect.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any, Final

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Quad, Scatter
from bokeh.plotting import figure

from fencepost.report.canvas import Canvas, Drawing, LegendEntry, seconds
from fencepost.report.faults import FaultLane, FaultSpan, first_fit, lanes_of
from fencepost.report.notation import length, moment, printable, shortened
from fencepost.report.painting import fault_entry, paint, tag, tooltip
from fencepost.report.windows import WindowSpan

_LANE_HEIGHT: Final = 34
_AXES_HEIGHT: Final = 76
_LANE_NAME_MAX: Final = 13
_BRIEF_MAX: Final = 160

_FAULT_ROWS: Final = [
    ("fault", "@label"),
    ("begun", "@begun"),
    ("effect", "@effect"),
    ("healed", "@healed"),
]
_WINDOW_LANE_HEIGHT: Final = 46
_LINE_MAX: Final = 12
"""The characters for which there is room beside the plot: more would move its time axis."""
_LINES_MAX: Final = 2
"""The lines of an API's name; its direction is one more."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_WINDOW: Final = "window:open"
_STRIKE: Final = "window:strike"
_WINDOW_ROWS: Final = [
    ("window", "@label"),
    ("laid", "@laid"),
    ("opened", "@opened"),
    ("struck", "@struck"),
    ("lifted", "@lifted"),
]
_Columns = Mapping[str, float | str]
# Each stretch of a window: which part of it, in ns, if it has any; and its look.
_Stretch = Callable[[WindowSpan, int], tuple[int, int] | None]
_STRETCHES: Final[Sequence[tuple[_Stretch, Mapping[str, Any]]]] = (
    (
        lambda span, end_ns: (
            (span.begin_ns, span.until_ns(end_ns)) if span.held_ns is None else None
        ),
        {"fill_alpha": 0.0, "line_dash": [4, 3]},
    ),
    (
        lambda span, _: None if span.held_ns is None else (span.begin_ns, span.held_ns),
        {"fill_alpha": 0.2, "line_alpha": 0.4},
    ),
    (
        lambda span, end_ns: (
            None if span.held_ns is None or span.struck else (span.held_ns, span.until_ns(end_ns))
        ),
        {"fill_alpha": 0.45},
    ),
    (
        lambda span, end_ns: (
            (span.held_ns, span.until_ns(end_ns))
            if span.held_ns is not None and span.struck
            else None
        ),
        {"fill_alpha": 0.9},
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnomalyMark:
    """A moment worth a look: where a shown anomaly begins."""

    time_ns: int
    check: str
    detail: str


def draw_faults(canvas: Canvas, marks: Sequence[AnomalyMark]) -> Drawing:
    """Draw each fault on the lane of each of its targets, and where the shown anomalies begin."""
    lanes = lanes_of(canvas.spans, run_end_ns=canvas.end_ns)
    targets = list(dict.fromkeys(lane.target for lane in lanes))
    names = [*targets, *(["anomalies"] if marks else [])]
    # The first lane is the top one.
    base = {name: len(names) - 1 - place for place, name in enumerate(names)}
    drawing = canvas.plot(
        unit="",
        extent=(0, len(names)),
        height=_AXES_HEIGHT + _LANE_HEIGHT * len(names),
    )
    axis = drawing.yaxis[0]
    axis.axis_label = None
    axis.ticker = FixedTicker(ticks=[place + 0.5 for place in base.values()])
    axis.major_label_overrides = {
        place + 0.5: shortened(printable(name), length_max=_LANE_NAME_MAX)
        for name, place in base.items()
    }
    drawing.ygrid[0].ticker = FixedTicker(ticks=list(range(len(names) + 1)))
    for kind, colour in canvas.colours.items():
        _lanes(canvas, drawing, [lane for lane in lanes if lane.span.kind == kind], base, colour)
    if marks:
        _marks(drawing, marks, base["anomalies"] + 0.5)
    caption = "each fault on its targets: pale until its effect was seen, then solid until its heal"
    if marks:
        caption += "; a diamond is an anomaly shown above"
    return Drawing(figure=drawing, title="Faults", caption=caption)


def _lanes(
    canvas: Canvas,
    drawing: figure,
    lanes: Sequence[FaultLane],
    base: Mapping[str, int],
    colour: str,
) -> None:
    """Draw the bars.

    They are solid while in effect, pale before, hollow and hatched if there never was an effect.
    """
    effective = [lane for lane in lanes if lane.span.effect_ns is not None]
    idle = [lane for lane in lanes if lane.span.effect_ns is None]
    looks: tuple[tuple[list[dict[str, float | str]], dict[str, Any]], ...] = (
        ([_bar(canvas, lane, base, until_effect=True) for lane in effective], {"fill_alpha": 0.25}),
        ([_bar(canvas, lane, base) for lane in effective], {"fill_alpha": 0.9}),
        (
            [_bar(canvas, lane, base) for lane in idle],
            {"fill_alpha": 0.0, "line_dash": [4, 3], "hatch_pattern": "/", "hatch_alpha": 0.6},
        ),
    )
    for bars, look in looks:
        if not bars:
            continue
        glyph = Quad(left="left", right="right", top="top", bottom="bottom", line_width=1.5, **look)
        paint(glyph, fill_color=colour, line_color=colour, hatch_color=colour)
        source = ColumnDataSource({name: [bar[name] for bar in bars] for name in bars[0]})
        renderer = drawing.add_glyph(source, glyph)
        tag(renderer, entry=fault_entry(lanes[0].span.kind))
        drawing.add_tools(HoverTool(renderers=[renderer], tooltips=tooltip(_FAULT_ROWS)))


def _bar(
    canvas: Canvas, lane: FaultLane, base: Mapping[str, int], *, until_effect: bool = False
) -> dict[str, float | str]:
    """Return one bar: from the effect on (from the begin, without one), or the part before it."""
    span = lane.span
    effect_ns = span.begin_ns if span.effect_ns is None else span.effect_ns
    height = 0.8 / lane.rows
    top = base[lane.target] + 0.9 - lane.row * height
    return {
        "left": seconds(span.begin_ns if until_effect else effect_ns),
        "right": seconds(effect_ns if until_effect else span.until_ns(canvas.end_ns)),
        "top": top,
        "bottom": top - height * 0.9,
        "label": _brief(f"#{span.index} {span.label}"),
        "begun": moment(span.begin_ns),
        "effect": _effect(span),
        "healed": _heal(span),
    }


def _effect(span: FaultSpan) -> str:
    if span.effect_ns is None:
        return "NONE WAS SEEN"
    return _brief(f"after {length(span.effect_ns - span.begin_ns)}: {span.evidence}")


def _heal(span: FaultSpan) -> str:
    if span.end_ns is None:
        return "not seen to heal"
    return _brief(f"{moment(span.end_ns)}: {span.heal_evidence}")


def _marks(drawing: figure, marks: Sequence[AnomalyMark], height: float) -> None:
    source = ColumnDataSource(
        {
            "x": [seconds(mark.time_ns) for mark in marks],
            "y": [height] * len(marks),
            "check": [printable(mark.check) for mark in marks],
            "time": [moment(mark.time_ns) for mark in marks],
            "detail": [_brief(mark.detail) for mark in marks],
        }
    )
    glyph = Scatter(x="x", y="y", marker="diamond", size=13, line_width=1)
    paint(glyph, fill_color="--invalid", line_color="--card")
    renderer = drawing.add_glyph(source, glyph)
    rows = [("anomaly", "@check"), ("time", "@time"), ("proof", "@detail")]
    drawing.add_tools(HoverTool(renderers=[renderer], tooltips=tooltip(rows)))


def _brief(text: str) -> str:
    return shortened(printable(text), length_max=_BRIEF_MAX)


def draw_windows(canvas: Canvas, windows: Sequence[WindowSpan]) -> Drawing:
    """Draw each window on the lane of its kind, from when it was laid to when it was lifted."""
    kinds = sorted({span.kind for span in windows})
    # The first lane is the top one.
    base = {kind: len(kinds) - 1 - place for place, kind in enumerate(kinds)}
    drawing = canvas.plot(
        unit="", extent=(0, len(kinds)), height=_AXES_HEIGHT + _WINDOW_LANE_HEIGHT * len(kinds)
    )
    axis = drawing.yaxis[0]
    axis.axis_label = None
    axis.ticker = FixedTicker(ticks=[place + 0.5 for place in base.values()])
    axis.major_label_overrides = {place + 0.5: _lane_name(kind) for kind, place in base.items()}
    drawing.ygrid[0].ticker = FixedTicker(ticks=list(range(len(kinds) + 1)))
    placed = [
        (span, base[kind] + 0.9 - row * 0.8 / rows, 0.72 / rows)
        for kind in kinds
        for span, row, rows in first_fit(
            [span for span in windows if span.kind == kind], run_end_ns=canvas.end_ns
        )
    ]
    for stretch, look in _STRETCHES:
        bars = [
            {**_window_words(span), "left": seconds(part[0]), "right": seconds(part[1])}
            | {"top": top, "bottom": top - height}
            for span, top, height in placed
            if (part := stretch(span, canvas.end_ns)) is not None
        ]
        glyph = Quad(left="left", right="right", top="top", bottom="bottom", line_width=1.5, **look)
        paint(glyph, fill_color="--disturbed", line_color="--disturbed")
        _draw_rows(drawing, glyph, bars, entry=_WINDOW)
    strikes = [
        {**_window_words(span), "x": seconds(span.strike_ns), "y": top - height / 2}
        for span, top, height in placed
        if span.strike_ns is not None
    ]
    mark = Scatter(x="x", y="y", marker="inverted_triangle", size=9, line_width=1)
    paint(mark, fill_color="--text", line_color="--card")
    _draw_rows(drawing, mark, strikes, entry=_STRIKE)
    return Drawing(
        figure=drawing,
        title="Windows",
        caption="by message: pale until it came, then solid until the window was lifted, lighter "
        "if no strike took effect; hollow if it never came",
        legend=(
            LegendEntry(label="window", colour="--disturbed", name=_WINDOW),
            LegendEntry(label="a strike took effect", colour="--text", name=_STRIKE),
        ),
    )


def _draw_rows(
    drawing: figure, glyph: Quad | Scatter, rows: Sequence[_Columns], *, entry: str
) -> None:
    if not rows:
        return
    source = ColumnDataSource({name: [row[name] for row in rows] for name in rows[0]})
    renderer = drawing.add_glyph(source, glyph)
    tag(renderer, entry=entry)
    drawing.add_tools(HoverTool(renderers=[renderer], tooltips=tooltip(_WINDOW_ROWS)))


def _window_words(span: WindowSpan) -> _Columns:
    about = f" of {span.key}" if span.key else ""
    struck = "no strike took effect"
    if span.struck:
        struck = ", ".join(span.struck)
        if span.strike_ns is not None:
            struck += f" at {moment(span.strike_ns)}"
    opened = "never: no message came"
    if span.held_ns is not None:
        opened = f"after {length(span.held_ns - span.begin_ns)}"
    return {
        "label": _brief(f"#{span.index} {span.name}: {span.kind}{about}"),
        "laid": moment(span.begin_ns),
        "opened": opened,
        "struck": _brief(struck),
        "lifted": "not before the end" if span.end_ns is None else moment(span.end_ns),
    }


def _lane_name(kind: str) -> str:
    """Return the kind in short lines, broken between the words of the API's name."""
    api, _, direction = printable(kind).partition(" ")
    lines = wrap(_HUMP.sub(" ", api), width=_LINE_MAX, max_lines=_LINES_MAX, placeholder="…")
    return "\n".join((*lines, shortened(direction, length_max=_LINE_MAX))).strip()
