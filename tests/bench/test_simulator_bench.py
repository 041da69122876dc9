import json

import pytest

from fencepost.bench.simulator import SectionFigures, SimulatorFigures, simulator_bench

FIGURES = SimulatorFigures(
    sections=(
        SectionFigures(
            name="trials",
            event_count=300_000,
            virtual_s=450.0,
            cpu_s=(3.0, 2.0, 4.0),
            shares={"loop of events": 0.75, "oracle": 0.25},
            sample_count=800,
        ),
    ),
    compiled=False,
)


def test_rates_are_of_the_seconds_of_a_core_and_shown_with_their_spread() -> None:
    lines = FIGURES.lines()
    assert any("75,000 / 100,000 / 150,000" in line for line in lines)
    assert any("112 / 150 / 225" in line for line in lines)
    assert any("loop of events 75%, oracle 25%" in line for line in lines)


def test_figures_are_there_for_machines_too() -> None:
    figures = json.loads(json.dumps(FIGURES.as_data()))
    [section] = figures["sections"]
    assert figures["compiled"] is False
    assert section["events_per_s"] == [100_000, 150_000, 75_000]
    assert section["virtual_s_per_s"] == [150, 225, 112.5]


@pytest.mark.slow
@pytest.mark.parametrize("section", ["recorded", "control-plane"])
def test_a_section_is_measured_and_its_time_shared_out(section: str) -> None:
    [figures] = simulator_bench(only=[section], runs=1).sections
    assert figures.event_count > 10_000
    assert figures.virtual_s > 45
    assert figures.cpu_s[0] > 0
    assert sum(figures.shares.values()) == pytest.approx(1.0 if figures.sample_count else 0.0)
