"""Samples of nodes and clients (memory, processor) put on the bins of the other plots.

A sampler has a rhythm of its own, so a bin without a sample takes the value before it, for as long
as the rhythm allows; where a node was gone, the line breaks.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.report.timeline import Bins

SOURCE_COUNT_MAX: Final = 12
"""The number of lines that an eye can tell apart; the sources with the highest peaks are kept."""

_RHYTHMS: Final = 2.5
"""The number of usual intervals for which a value stands: one sample may be late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSeries:
    """One metric: a mean a bin and source, NaN where nothing was sampled."""

    metric: str
    by_source: Mapping[str, NDArray[np.float64]]
    """The means of each source, in the order of the names."""
    source_count: int
    """The number of sources, the ones left out included."""


def series_of(samples: pa.Table, *, metric: str, bins: Bins) -> SampleSeries:
    """Return the series of one metric of a `samples` table (schema `history.schema.SAMPLES`)."""
    chosen = samples.filter(pc.equal(samples["metric"], metric))
    by_source = {
        source: _line(chosen.filter(pc.equal(chosen["source"], source)), bins)
        for source in pc.unique(chosen["source"]).to_pylist()
    }
    highest = sorted(by_source, key=lambda source: (-np.nanmax(by_source[source]), source))
    return SampleSeries(
        metric=metric,
        by_source={name: by_source[name] for name in sorted(highest[:SOURCE_COUNT_MAX])},
        source_count=len(by_source),
    )


def _line(samples: pa.Table, bins: Bins) -> NDArray[np.float64]:
    """Return the mean a bin of one source (at least one row), with gaps of its rhythm filled."""
    times_ns = np.sort(samples["time_ns"].to_numpy())
    places = bins.of(samples["time_ns"].to_numpy())
    counts = np.bincount(places, minlength=bins.count)
    sums = np.bincount(places, weights=samples["value"].to_numpy(), minlength=bins.count)
    means = np.divide(sums, counts, out=np.full(bins.count, np.nan), where=counts > 0)
    rhythm_ns = float(np.median(np.diff(times_ns))) if len(times_ns) > 1 else 0.0
    # `latest[i]`: the last bin up to i that has a sample; -1 before the first.
    latest = np.maximum.accumulate(np.where(counts > 0, np.arange(bins.count), -1))
    age = np.arange(bins.count) - latest
    near = (latest >= 0) & (age <= _RHYTHMS * rhythm_ns / bins.width_ns)
    return np.where((age == 0) | near, means[latest], np.nan)
