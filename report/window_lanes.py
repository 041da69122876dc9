"""The plot of the windows: a lane a kind, a bar a window, and a mark where a strike took effect."""

import re
from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap
from typing import Any, Final

from bokeh.models import ColumnDataSource, FixedTicker, HoverTool, Quad, Scatter
from bokeh.plotting import figure

from report.canvas import Canvas, Drawing, LegendEntry, seconds
from report.faults import first_fit
from report.notation import length, moment, printable, shortened
from report.painting import paint, tag, tooltip
from report.windows import WindowSpan

__all__ = ["draw_windows"]

_LANE_HEIGHT: Final = 46
_AXES_HEIGHT: Final = 76
_LINE_MAX: Final = 12
"""The characters for which there is room beside the plot: more would move its time axis."""
_LINES_MAX: Final = 2
"""The lines of an API's name; its direction is one more."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LABEL_MAX: Final = 160

_OPEN: Final = "window:open"
_STRIKE: Final = "window:strike"

_ROWS: Final = [
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


def draw_windows(canvas: Canvas, windows: Sequence[WindowSpan]) -> Drawing:
    """Draw each window on the lane of its kind, from when it was laid to when it was lifted."""
    kinds = sorted({span.kind for span in windows})
    # The first lane is the top one.
    base = {kind: len(kinds) - 1 - place for place, kind in enumerate(kinds)}
    drawing = canvas.plot(
        unit="", extent=(0, len(kinds)), height=_AXES_HEIGHT + _LANE_HEIGHT * len(kinds)
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
            {**_words(span), "left": seconds(part[0]), "right": seconds(part[1])}
            | {"top": top, "bottom": top - height}
            for span, top, height in placed
            if (part := stretch(span, canvas.end_ns)) is not None
        ]
        glyph = Quad(left="left", right="right", top="top", bottom="bottom", line_width=1.5, **look)
        paint(glyph, fill_color="--disturbed", line_color="--disturbed")
        _draw(drawing, glyph, bars, entry=_OPEN)
    strikes = [
        {**_words(span), "x": seconds(span.strike_ns), "y": top - height / 2}
        for span, top, height in placed
        if span.strike_ns is not None
    ]
    mark = Scatter(x="x", y="y", marker="inverted_triangle", size=9, line_width=1)
    paint(mark, fill_color="--text", line_color="--card")
    _draw(drawing, mark, strikes, entry=_STRIKE)
    return Drawing(
        figure=drawing,
        title="Windows",
        caption="by message: pale until it came, then solid until the window was lifted, lighter "
        "if no strike took effect; hollow if it never came",
        legend=(
            LegendEntry(label="window", colour="--disturbed", name=_OPEN),
            LegendEntry(label="a strike took effect", colour="--text", name=_STRIKE),
        ),
    )


def _draw(drawing: figure, glyph: Quad | Scatter, rows: Sequence[_Columns], *, entry: str) -> None:
    if not rows:
        return
    source = ColumnDataSource({name: [row[name] for row in rows] for name in rows[0]})
    renderer = drawing.add_glyph(source, glyph)
    tag(renderer, entry=entry)
    drawing.add_tools(HoverTool(renderers=[renderer], tooltips=tooltip(_ROWS)))


def _words(span: WindowSpan) -> _Columns:
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


def _brief(text: str) -> str:
    return shortened(printable(text), length_max=_LABEL_MAX)
