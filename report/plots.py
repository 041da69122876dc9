"""The plots of a page, as one Bokeh document: linked in time, shaded by fault, coloured by role.

The curves are rates of operations, latencies and samples of nodes; `report.lanes` has the rest.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from bokeh.document import Document
from bokeh.models import ColumnDataSource
from bokeh.plotting import figure
from numpy.typing import NDArray

from fencepost.history.operation import Outcome
from fencepost.report.canvas import Canvas, Drawing, LegendEntry, width
from fencepost.report.functions import OF_RECORDS, OF_ZNODES
from fencepost.report.lanes import AnomalyMark, draw_faults, draw_windows
from fencepost.report.latencies import Latencies
from fencepost.report.notation import printable
from fencepost.report.painting import paint, tag
from fencepost.report.samples import SampleSeries
from fencepost.report.timeline import Timeline
from fencepost.report.windows import WindowSpan

_MIB: Final = float(1 << 20)
# By metric: what its samples are divided by, the unit that this makes, the title and the caption.
_SCALES: Final = {
    "rss_bytes": (_MIB, "MiB", "Memory", "resident set size of each process, mean a bin"),
    "cpu_fraction": (1.0, "cores", "Processor", "cores that each process kept busy, mean a bin"),
}
_QUANTILES: Final = ("max", "p99", "p50")
# The outcomes that there can be, and what each means.
_OF_SENDS: Final = {
    "ok": "acknowledged",
    "info": "fate unknown",
    "fail": "surely not written",
}
_OF_WRITES: Final = {
    "ok": "acknowledged",
    "refused": "what it asked for did not hold",
    "info": "fate unknown",
    "fail": "surely not done",
}
_OF_READS: Final = {"ok": "answered", "info": "end not seen", "fail": "no answer"}


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
    marks: Sequence[AnomalyMark],
    source_colours: Mapping[str, str],
) -> PlotSet:
    """Draw everything. `timeline`: None for an open history.

    `source_colours`: the CSS variable of each source of samples.
    """
    drawings = (
        *([draw_faults(canvas, marks)] if canvas.spans or marks else []),
        *([draw_windows(canvas, windows)] if windows else []),
        *(_draw_operations(canvas, timeline) if timeline is not None else ()),
        *(_draw_samples(canvas, series, source_colours) for series in samples),
    )
    document = Document()
    for drawing in drawings:
        document.add_root(drawing.figure)
    return PlotSet(
        # Inlined, for a page has no side channel for the arrays.
        document_json=json.dumps(document.to_json(deferred=False)),
        drawings=drawings,
    )


def _draw_operations(canvas: Canvas, timeline: Timeline) -> Iterator[Drawing]:
    """Draw the rates and latencies of a run on records, or of one on znodes."""
    writes, reads = timeline.functions.writes, timeline.functions.reads
    if timeline.functions == OF_RECORDS:
        yield _outcomes(canvas, _rates(timeline, writes), noun="sends", meanings=_OF_SENDS)
        yield _latencies(canvas, timeline.latencies[writes], noun="acknowledged sends")
        yield _polls(canvas, timeline)
    if timeline.functions == OF_ZNODES:
        rates = _rates(timeline, writes)
        refused = timeline.refused_writes / timeline.bins.width_s
        apart = {**rates, "fail": rates["fail"] - refused, "refused": refused}
        yield _outcomes(canvas, apart, noun="writes", meanings=_OF_WRITES)
        yield _latencies(canvas, timeline.latencies[writes], noun="acknowledged writes")
        yield _outcomes(canvas, _rates(timeline, reads), noun="reads", meanings=_OF_READS)
        yield _latencies(canvas, timeline.latencies[reads], noun="answered reads")


def _rates(timeline: Timeline, fs: frozenset[str]) -> dict[str, NDArray[np.float64]]:
    return {outcome.value: timeline.rate(fs, outcome) for outcome in Outcome}


def _outcomes(
    canvas: Canvas,
    rates: Mapping[str, NDArray[np.float64]],
    *,
    noun: str,
    meanings: Mapping[str, str],
) -> Drawing:
    """Draw the operations a second by outcome, refusals apart. `meanings`: of each in `rates`."""
    drawing = canvas.plot(unit=f"{noun} / s", extent=_from_zero(*rates.values()))
    _area(canvas, drawing, rates["ok"], colour="--ok", entry="ok")
    if "refused" in rates:
        _step(canvas, drawing, rates["refused"], colour="--refused", entry="refused")
    _bars(canvas, drawing, rates)
    canvas.strips(drawing, rates, rows=[(one, _rate_field(one)) for one in meanings])
    return Drawing(
        figure=drawing,
        title=noun.capitalize(),
        caption=f"{noun} ended a second, bins of {width(canvas.bins)}",
        legend=tuple(
            LegendEntry(label=f"{one}: {meaning}", colour=f"--{one}", name=one)
            for one, meaning in meanings.items()
        ),
    )


def _polls(canvas: Canvas, timeline: Timeline) -> Drawing:
    """Draw polls a second by outcome, and the records they returned: empty polls are ok, too."""
    rates = _rates(timeline, timeline.functions.reads)
    records = timeline.polled_records / timeline.bins.width_s
    drawing = canvas.plot(unit="per second", extent=_from_zero(records, *rates.values()))
    _area(canvas, drawing, records, colour="--records", entry="records")
    _step(canvas, drawing, rates["ok"], colour="--ok", entry="ok")
    _bars(canvas, drawing, rates)
    rows = [(one, _rate_field(one)) for one in ("records", "ok", "info", "fail")]
    canvas.strips(drawing, {**rates, "records": records}, rows=rows)
    return Drawing(
        figure=drawing,
        title="Polls",
        caption=f"polls ended and records returned a second, bins of {width(canvas.bins)}",
        legend=(
            LegendEntry(label="records returned", colour="--records", name="records"),
            LegendEntry(label="ok polls", colour="--ok", name="ok"),
            LegendEntry(label="info", colour="--info", name="info"),
            LegendEntry(label="fail", colour="--fail", name="fail"),
        ),
    )


def _latencies(canvas: Canvas, found: Latencies, *, noun: str) -> Drawing:
    """Draw quantiles of the latency of ok operations."""
    lines = {"max": found.max_ms, "p99": found.p99_ms, "p50": found.p50_ms}
    drawing = canvas.plot(unit="ms (log)", extent=_decades(*lines.values()), logarithmic=True)
    for name in _QUANTILES:
        _step(canvas, drawing, lines[name], colour=f"--{name}", entry=name)
    rows = [(name, f"@{name}{{0,0.[00]}} ms") for name in _QUANTILES]
    canvas.strips(drawing, lines, rows=rows)
    return Drawing(
        figure=drawing,
        title=f"Latency of {noun}",
        caption=f"from call to answer, by the time of the call, bins of {width(canvas.bins)}",
        legend=tuple(LegendEntry(label=name, colour=f"--{name}", name=name) for name in _QUANTILES),
    )


def _draw_samples(canvas: Canvas, series: SampleSeries, colours: Mapping[str, str]) -> Drawing:
    """Draw a line a source. `colours`: the CSS variable of each."""
    scale, unit, title, caption = _SCALES[series.metric]
    lines = {source: values / scale for source, values in series.by_source.items()}
    drawing = canvas.plot(unit=unit, extent=_from_zero(*lines.values()))
    for source, values in lines.items():
        _line(canvas, drawing, values, colour=colours[source], entry=_source_entry(source))
    # A source's name may hold what Bokeh takes for a field, so the columns are numbered.
    columns = {f"source_{place}": values for place, values in enumerate(lines.values())}
    fields = [f"@{column}{{0,0.[00]}} {unit}" for column in columns]
    names = [printable(source) for source in lines]
    canvas.strips(drawing, columns, rows=list(zip(names, fields, strict=True)))
    if series.source_count > len(lines):
        caption += f"; the {len(lines)} highest of {series.source_count}"
    return Drawing(
        figure=drawing,
        title=title,
        caption=caption,
        legend=tuple(
            LegendEntry(label=source, colour=colours[source], name=_source_entry(source))
            for source in lines
        ),
    )


def _rate_field(name: str) -> str:
    return f"@{name}{{0,0.[0]}} / s"


def _source_entry(source: str) -> str:
    return f"source:{source}"


def _area(
    canvas: Canvas, drawing: figure, values: NDArray[np.float64], *, colour: str, entry: str
) -> None:
    source = ColumnDataSource(
        {"x": _middles(canvas), "y": np.round(values, 4), "zero": np.zeros(len(values))}
    )
    area = drawing.varea_step(
        x="x", y1="zero", y2="y", step_mode="center", fill_alpha=0.16, source=source
    )
    paint(area.glyph, fill_color=colour)
    tag(area, entry=entry)
    _step(canvas, drawing, values, colour=colour, entry=entry)


def _step(
    canvas: Canvas, drawing: figure, values: NDArray[np.float64], *, colour: str, entry: str
) -> None:
    step = drawing.step(_middles(canvas), np.round(values, 4), mode="center", line_width=1.6)
    paint(step.glyph, line_color=colour)
    tag(step, entry=entry)


def _line(
    canvas: Canvas, drawing: figure, values: NDArray[np.float64], *, colour: str, entry: str
) -> None:
    line = drawing.line(_middles(canvas), np.round(values, 4), line_width=1.6)
    paint(line.glyph, line_color=colour)
    tag(line, entry=entry)


def _bars(canvas: Canvas, drawing: figure, rates: Mapping[str, NDArray[np.float64]]) -> None:
    """Draw info and fail, stacked, only where there are any: a line at zero says nothing."""
    floor = np.zeros(canvas.bins.count)
    for outcome in (Outcome.INFO, Outcome.FAIL):
        values = rates[outcome.value]
        some = np.flatnonzero(values)
        left = canvas.bins.starts_s[some]
        bars = drawing.quad(
            left=left,
            right=left + canvas.bins.width_s,
            bottom=np.round(floor[some], 4),
            top=np.round((floor + values)[some], 4),
            fill_alpha=0.75,
            line_width=1,
        )
        paint(bars.glyph, fill_color=f"--{outcome}", line_color=f"--{outcome}")
        tag(bars, entry=outcome.value)
        floor = floor + values


def _middles(canvas: Canvas) -> NDArray[np.float64]:
    return canvas.bins.starts_s + canvas.bins.width_s / 2


def _from_zero(*lines: NDArray[np.float64]) -> tuple[float, float]:
    top = max((float(np.nanmax(line)) for line in lines if np.isfinite(line).any()), default=0.0)
    return 0, top * 1.08 or 1


def _decades(*lines: NDArray[np.float64]) -> tuple[float, float]:
    """Return the whole powers of ten around everything, at least two apart."""
    values = np.concatenate(lines)
    values = values[np.isfinite(values) & (values > 0)]
    if not len(values):
        return 1, 1000
    low = int(np.floor(np.log10(values.min())))
    high = max(low + 2, int(np.ceil(np.log10(values.max() * 1.05))))
    return 10.0**low, 10.0**high
