"""An empty plot of a run: the shared time axis, faults shaded, the heal marked, one hover a bin.

One invisible strip a bin answers the pointer: it reaches over the height of the plot, so that no
line has to be aimed at, and lists every figure of the bin and the faults that were open then.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from bokeh.models import (
    BasicTicker,
    BoxZoomTool,
    ColumnDataSource,
    CrosshairTool,
    FixedTicker,
    HoverTool,
    NumeralTickFormatter,
    Range1d,
    VStrip,
)
from bokeh.models.annotations import Label, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from fencepost.report.faults import FaultSpan
from fencepost.report.notation import printable
from fencepost.report.painting import FONT, fault_entry, paint, tag, tooltip
from fencepost.report.timeline import Bins

Columns = Mapping[str, NDArray[np.float64]]

_NS: Final = 1e9
_DECADES_APART: Final = 3
"""The number of powers of ten up to which there is room for ticks between them."""
_HEIGHT: Final = 190
# Wide enough for the names of nodes and for "100,000", so that the time axes of all plots align.
_BORDER_LEFT: Final = 84
_SHADE_ALPHA: Final = 0.16
_LATE: Final = 0.8
"""The share of the plot from which words to the right of a moment might leave a narrow plot."""
_FAULTS_NAMED_MAX: Final = 4


def seconds(time_ns: float) -> float:
    """Return a time in seconds, as on the time axis."""
    return time_ns / _NS


def width(bins: Bins) -> str:
    """Return the width of a bin as captions write it."""
    return f"{bins.width_s:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class LegendEntry:
    """One entry of a legend: its words, its CSS variable, and the name that its models carry."""

    label: str
    colour: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A plot, and what stands around it on the page."""

    figure: figure
    title: str
    caption: str
    legend: tuple[LegendEntry, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Canvas:
    """The parts that all plots of a run share.

    `colours`: the CSS variable of each kind of fault.
    """

    bins: Bins
    spans: Sequence[FaultSpan]
    end_ns: int
    healed_ns: int | None
    colours: Mapping[str, str]
    x_range: Range1d = field(init=False)
    pointer: Span = field(init=False)
    open_labels: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Make the models that link the plots, once."""
        end = seconds(self.end_ns)
        linked = Range1d(start=0, end=end, bounds=(0, end), min_interval=min(end, 0.05))
        pointer = Span(dimension="height", line_width=1, line_alpha=0.5)
        paint(pointer, line_color="--quiet")
        tag(pointer, role="pointer")
        object.__setattr__(self, "x_range", linked)
        object.__setattr__(self, "pointer", pointer)
        object.__setattr__(self, "open_labels", self._open_labels())

    def plot(
        self,
        *,
        unit: str,
        extent: tuple[float, float],
        logarithmic: bool = False,
        height: int = _HEIGHT,
    ) -> figure:
        """Return a plot without data: axes, grid, faults, heal. `extent`: the range of y."""
        drawing = figure(
            height=height,
            sizing_mode="stretch_width",
            x_range=self.x_range,
            y_range=Range1d(start=extent[0], end=extent[1]),
            y_axis_type="log" if logarithmic else "linear",
            x_axis_label="seconds of the run",
            y_axis_label=unit,
            tools=[],
            # A drag zooms; the rest is on the page, once for all plots.
            toolbar_location=None,
            background_fill_color=None,
            border_fill_color=None,
            min_border_left=_BORDER_LEFT,
            min_border_right=12,
            min_border_top=6,
        )
        drawing.yaxis[0].ticker = (
            FixedTicker(ticks=_round_ticks(*extent))
            if logarithmic
            else BasicTicker(desired_num_ticks=5)
        )
        drawing.ygrid[0].ticker = drawing.yaxis[0].ticker
        self._style(drawing)
        self._shade(drawing)
        self._mark_heal(drawing, top=extent[1])
        return drawing

    def strips(self, drawing: figure, columns: Columns, *, rows: Sequence[tuple[str, str]]) -> None:
        """Answer the pointer: `rows` of label and Bokeh field, with the bin's time and faults."""
        starts = self.bins.starts_s
        content = {name: np.round(values, 4) for name, values in columns.items()}
        source = ColumnDataSource(
            {
                **content,
                "from": starts,
                "to": np.minimum(starts + self.bins.width_s, seconds(self.end_ns)),
                "faults": list(self.open_labels),
            }
        )
        strips = drawing.add_glyph(source, VStrip(x0="from", x1="to", fill_alpha=0, line_alpha=0))
        digits = "0,0.0" if self.bins.width_s < 1 else "0,0"
        drawing.add_tools(
            HoverTool(
                renderers=[strips],
                tooltips=tooltip(
                    [
                        ("time", f"@from{{{digits}}} to @to{{{digits}}} s"),
                        *rows,
                        ("faults", "@faults"),
                    ]
                ),
                point_policy="follow_mouse",
            )
        )

    def _style(self, drawing: figure) -> None:
        drawing.add_tools(BoxZoomTool(dimensions="width"), CrosshairTool(overlay=self.pointer))
        drawing.outline_line_color = None
        paint(drawing.ygrid[0], grid_line_color="--line")
        drawing.xgrid.grid_line_color = None
        for axis in (drawing.xaxis[0], drawing.yaxis[0]):
            axis.axis_label_text_font_style = "normal"
            axis.axis_label_text_font = axis.major_label_text_font = FONT
            axis.axis_label_text_font_size = axis.major_label_text_font_size = "11px"
            axis.minor_tick_line_color = None
            axis.formatter = NumeralTickFormatter(format="0,0.[000]")
            paint(
                axis,
                axis_line_color="--line",
                major_tick_line_color="--line",
                axis_label_text_color="--quiet",
                major_label_text_color="--quiet",
            )

    def _shade(self, drawing: figure) -> None:
        """Shade each fault from its effect to its heal; one without effect shades nothing."""
        for kind, colour in self.colours.items():
            effective = [s for s in self.spans if s.kind == kind and s.effect_ns is not None]
            source = ColumnDataSource(
                {
                    "from": [seconds(span.effect_ns or 0) for span in effective],
                    "to": [seconds(span.until_ns(self.end_ns)) for span in effective],
                }
            )
            glyph = VStrip(x0="from", x1="to", fill_alpha=_SHADE_ALPHA, line_alpha=_SHADE_ALPHA)
            paint(glyph, fill_color=colour, line_color=colour)
            tag(drawing.add_glyph(source, glyph, level="underlay"), entry=fault_entry(kind))

    def _mark_heal(self, drawing: figure, *, top: float) -> None:
        if self.healed_ns is None:
            return
        healed = Span(
            location=seconds(self.healed_ns), dimension="height", line_dash=[4, 3], line_width=1.5
        )
        paint(healed, line_color="--valid")
        late = self.healed_ns > _LATE * self.end_ns
        label = Label(
            x=seconds(self.healed_ns),
            y=top,
            x_offset=-4 if late else 4,
            text_align="right" if late else "left",
            y_offset=-2,
            text_baseline="top",
            text="healed",
            text_font=FONT,
            text_font_size="11px",
        )
        paint(label, text_color="--valid")
        drawing.add_layout(healed)
        drawing.add_layout(label)

    def _open_labels(self) -> tuple[str, ...]:
        """Return the faults open in each bin, in words."""
        named: list[list[str]] = [[] for _ in range(self.bins.count)]
        for span in self.spans:
            ends = np.array([span.begin_ns, span.until_ns(self.end_ns)], dtype=np.int64)
            first, last = self.bins.of(ends)
            words = span.label if span.effect_ns is not None else f"{span.label} (no effect)"
            for place in range(int(first), int(last) + 1):
                named[place].append(printable(words))
        return tuple(_listed(labels) for labels in named)


def _listed(labels: Sequence[str]) -> str:
    if len(labels) > _FAULTS_NAMED_MAX:
        rest = len(labels) - _FAULTS_NAMED_MAX
        return f"{', '.join(labels[:_FAULTS_NAMED_MAX])} and {rest} more"
    return ", ".join(labels) or "none"


def _round_ticks(low: float, high: float) -> list[float]:
    """Return the powers of ten between two of them, and their threefold where that leaves few."""
    decades = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    if len(decades) > _DECADES_APART:
        return decades
    return sorted([*decades, *(3 * decade for decade in decades[:-1])])
