import json

from fencepost.bench.recorder import RecorderFigures

FIGURES = RecorderFigures(
    title="Kafka 4.3.1",
    java="17",
    value_bytes=100,
    seconds=5,
    recorded_per_s=(90_000.0, 200_000.0, 150_000.0),
    unrecorded_per_s=(100_000.0, 160_000.0, 150_000.0),
    alone_per_s=(10_000_000.0,),
)


def test_a_recorded_run_is_compared_with_the_unrecorded_one_beside_it() -> None:
    assert FIGURES.ratios == (0.9, 1.25, 1.0)


def test_figures_are_shown_as_minimum_median_and_maximum() -> None:
    assert any("90,000 /   150,000 /   200,000" in line for line in FIGURES.lines())
    assert any("0.90 /      1.00 /      1.25" in line for line in FIGURES.lines())


def test_figures_are_there_for_machines_too() -> None:
    assert json.loads(json.dumps(FIGURES.as_data()))["ratios"] == [0.9, 1.25, 1.0]
