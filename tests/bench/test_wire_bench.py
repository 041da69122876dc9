import json

from fencepost.bench.wire import WireFigures

FIGURES = WireFigures(
    kafka="4.3.1",
    java="17",
    value_bytes=200,
    seconds=5,
    direct_per_s=(100_000.0, 160_000.0, 150_000.0),
    proxied_per_s=(90_000.0, 200_000.0, 150_000.0),
    direct_ms=(1.0, 2.0, 3.0),
    proxied_ms=(1.5, 1.75, 3.0),
    proxy_cpu_share=(0.1, 0.2, 0.15),
)


def test_a_run_behind_the_proxy_is_compared_with_the_direct_one_beside_it() -> None:
    assert FIGURES.ratios == (0.9, 1.25, 1.0)
    assert FIGURES.added_ms == (0.5, -0.25, 0.0)


def test_figures_are_shown_as_minimum_median_and_maximum() -> None:
    assert any("90,000 /   150,000 /   200,000" in line for line in FIGURES.lines())
    assert any("0.90 /      1.00 /      1.25" in line for line in FIGURES.lines())
    assert any("-0.25 /      0.00 /      0.50" in line for line in FIGURES.lines())


def test_figures_are_there_for_machines_too() -> None:
    data = json.loads(json.dumps(FIGURES.as_data()))
    assert data["ratios"] == [0.9, 1.25, 1.0]
    assert data["added_ms"] == [0.5, -0.25, 0.0]
