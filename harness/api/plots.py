"""Plots of a run for a notebook, as Bokeh figures."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from bokeh.models.annotations import BoxAnnotation
from bokeh.plotting import figure
from numpy.typing import NDArray

from fencepost.history.failure import UsageError
from fencepost.history.operation import Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.report.reading import Reading, read_run
from fencepost.report.timeline import Timeline

_WIDTH: Final = 900
_HEIGHT: Final = 300
_LATENCIES: Final = {"max": "#b8b8b8", "p99": "#d9822b", "p50": "#2b6cb0"}
_OUTCOMES: Final = {Outcome.OK: "#2f855a", Outcome.FAIL: "#c53030", Outcome.INFO: "#805ad5"}
_FAULT: Final = "#c53030"


class Plots:
    """The plots of one run. The spans of its faults are shaded; time is in seconds."""

    def __init__(self, run: RunDirectory) -> None:
        self._run = run

    def latency(self) -> figure:
        """Return the latency of acknowledged writes, in ms: median, p99 and maximum of each bin.

        Raises UsageError for a run without operations over time.
        """
        reading, timeline = self._read()
        found = timeline.latencies[timeline.functions.writes]
        lines = {"max": found.max_ms, "p99": found.p99_ms, "p50": found.p50_ms}
        return _drawn(reading, timeline, lines, _LATENCIES, unit="ms", logarithmic=True)

    def rate(self) -> figure:
        """Return the writes a second by outcome, at the time of their answers.

        Raises UsageError for a run without operations over time.
        """
        reading, timeline = self._read()
        writes = timeline.functions.writes
        lines = {one.value: timeline.rate(writes, one) for one in Outcome}
        colours = {one.value: colour for one, colour in _OUTCOMES.items()}
        return _drawn(reading, timeline, lines, colours, unit="writes / s")

    def _read(self) -> tuple[Reading, Timeline]:
        reading = read_run(self._run)
        if reading.timeline is None:
            raise UsageError(f"{self._run.root}: an open history has no operations over time")
        return reading, reading.timeline


def _drawn(
    reading: Reading,
    timeline: Timeline,
    lines: Mapping[str, NDArray[np.float64]],
    colours: Mapping[str, str],
    *,
    unit: str,
    logarithmic: bool = False,
) -> figure:
    drawing = figure(
        width=_WIDTH,
        height=_HEIGHT,
        x_axis_label="s",
        y_axis_label=unit,
        y_axis_type="log" if logarithmic else "linear",
    )
    for span in reading.spans:
        left, right = span.begin_ns / 1e9, span.until_ns(reading.end_ns) / 1e9
        shade = BoxAnnotation(left=left, right=right, fill_color=_FAULT, fill_alpha=0.08)
        drawing.add_layout(shade)
    at_s = np.arange(timeline.bins.count) * timeline.bins.width_s
    for name, values in lines.items():
        drawing.step(at_s, values, mode="after", color=colours[name], legend_label=name)
    return drawing
