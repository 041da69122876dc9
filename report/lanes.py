"""The plot of the faults: a lane a target, a bar a fault, and the anomalies below them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Quad, Scatter
from bokeh.plotting import figure

from report.canvas import Canvas, Drawing, seconds
from report.faults import FaultLane, FaultSpan, lanes_of
from report.notation import length, moment, printable, shortened
from report.painting import fault_entry, paint, tag, tooltip

__all__ = ["Mark", "draw_faults"]

_LANE_HEIGHT: Final = 34
_AXES_HEIGHT: Final = 76
_LANE_NAME_MAX: Final = 13
_EVIDENCE_MAX: Final = 160

_FAULT_ROWS: Final = [
    ("fault", "@label"),
    ("begun", "@begun"),
    ("effect", "@effect"),
    ("healed", "@healed"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A moment worth a look: where a shown anomaly begins."""

    time_ns: int
    check: str
    detail: str


def draw_faults(canvas: Canvas, marks: Sequence[Mark]) -> Drawing:
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


def _marks(drawing: figure, marks: Sequence[Mark], height: float) -> None:
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
    return shortened(printable(text), length_max=_EVIDENCE_MAX)
