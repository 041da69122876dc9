import numpy as np
import pyarrow as pa

from fencepost.history.schema import SAMPLES
from fencepost.report.samples import SOURCE_COUNT_MAX, series_of
from fencepost.report.timeline import bins_for

SECOND = 1_000_000_000


def table(*rows: tuple[float, str, float], metric: str = "rss_bytes") -> pa.Table:
    content = [
        {"time_ns": round(at * SECOND), "source": source, "metric": metric, "value": value}
        for at, source, value in rows
    ]
    return pa.Table.from_pylist(content, schema=SAMPLES)


def test_a_bin_has_the_mean_of_its_samples() -> None:
    found = series_of(
        table((0.1, "broker-1", 10.0), (0.2, "broker-1", 30.0), (0.6, "broker-1", 5.0)),
        metric="rss_bytes",
        bins=bins_for(SECOND),
    )
    assert found.by_source["broker-1"].tolist() == [20.0, 5.0]


def test_a_slow_sampler_makes_no_gaps_but_a_gone_node_does() -> None:
    rows = [(float(at), "broker-1", 1.0) for at in (0, 1, 2, 3, 10, 11)]
    found = series_of(table(*rows), metric="rss_bytes", bins=bins_for(12 * SECOND))
    known = np.isfinite(found.by_source["broker-1"])
    assert known[:8].all()
    assert not known[12:20].any()
    assert known[20:].all()


def test_nothing_is_shown_before_the_first_sample() -> None:
    found = series_of(table((3.0, "a", 1.0)), metric="rss_bytes", bins=bins_for(4 * SECOND))
    assert np.flatnonzero(np.isfinite(found.by_source["a"])).tolist() == [6]


def test_of_many_sources_the_highest_are_kept() -> None:
    rows = [(0.0, f"client-{n:02}", float(n)) for n in range(30)]
    found = series_of(table(*rows), metric="rss_bytes", bins=bins_for(SECOND))
    assert found.source_count == 30
    assert list(found.by_source) == [f"client-{n:02}" for n in range(30 - SOURCE_COUNT_MAX, 30)]


def test_another_metric_is_another_series() -> None:
    found = series_of(table((0.0, "a", 1.0)), metric="cpu_fraction", bins=bins_for(SECOND))
    assert found.by_source == {}
