"""The plots of a page, as one Bokeh document: linked in time, shaded by fault, coloured by role."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bokeh.document import Document

from report.canvas import Canvas, Drawing
from report.curves import draw_operations, draw_samples
from report.lanes import Mark, draw_faults
from report.samples import SampleSeries
from report.timeline import Timeline
from report.window_lanes import draw_windows
from report.windows import WindowSpan

__all__ = ["PlotSet", "plots_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlotSet:
    """All plots of a page."""

    document_json: str
    """A Bokeh document whose roots are the plots, in order."""
    drawings: tuple[Drawing, ...]


def plots_of(
    canvas: Canvas,
    timeline: Timeline | None,
    *,
    windows: Sequence[WindowSpan],
    samples: Sequence[SampleSeries],
    marks: Sequence[Mark],
    source_colours: Mapping[str, str],
) -> PlotSet:
    """Draw everything. `timeline`: None for an open history.

    `source_colours`: the CSS variable of each source of samples.
    """
    drawings = (
        *([draw_faults(canvas, marks)] if canvas.spans or marks else []),
        *([draw_windows(canvas, windows)] if windows else []),
        *(draw_operations(canvas, timeline) if timeline is not None else ()),
        *(draw_samples(canvas, series, source_colours) for series in samples),
    )
    document = Document()
    for drawing in drawings:
        document.add_root(drawing.figure)
    return PlotSet(
        # Inlined, for a page has no side channel for the arrays.
        document_json=json.dumps(document.to_json(deferred=False)),
        drawings=drawings,
    )
