"""The bench of the checkers: its histories are what it says, and its figures add up."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fencepost.bench.checkers import SECTIONS, CheckerFigures, SizeFigures, checkers_bench
from fencepost.bench.command import bench
from fencepost.bench.measuring import Cost, growth, measured
from fencepost.bench.worst_cases import WORST_CASES
from fencepost.checkers.linearizability.versioned import nonlinearizable
from fencepost.history.models import Model


def _figures(size: int, *seconds: float) -> SizeFigures:
    costs = tuple(Cost(seconds=one, cpu_s=2 * one, rss_bytes_max=3 << 20) for one in seconds)
    return SizeFigures(section="registers", unit="operations", size=size, costs=costs)


@pytest.mark.parametrize("name", WORST_CASES)
def test_the_worst_cases_are_linearizable_and_by_index(
    name: str,
) -> None:
    rows = WORST_CASES[name]("k0", 40)
    found = nonlinearizable("k0", rows, Model.VERSIONED_REGISTER)
    assert (found.never_count, found.doubt) == (0, "")
    assert rows["index"].to_pylist() == list(range(40))
    assert np.all(np.diff(rows["call_ns"].to_numpy()) >= 0)


def test_growth_is_the_exponent_between_neighbouring_sizes() -> None:
    assert growth([10, 100, 1000], [1.0, 10.0, 1000.0]) == pytest.approx((1.0, 2.0))
    assert growth([10], [1.0]) == ()


def test_memory_of_the_work_is_seen_and_what_came_before_is_not_counted_as_its_time() -> None:
    def work() -> None:
        kept = np.ones(64 << 20, dtype=np.uint8)
        assert kept.sum() == 64 << 20

    cost = measured(work)
    assert cost.rss_bytes_max > 64 << 20
    assert 0 < cost.cpu_s < 60


def test_figures_show_rates_seconds_memory_and_growth() -> None:
    figures = CheckerFigures(sizes=(_figures(1000, 1.0, 2.0, 4.0), _figures(10_000, 20.0)))
    text = "\n".join(figures.lines())
    assert "250 /         500 /       1,000" in text
    assert "1.00 /     2.00 /     4.00" in text
    assert "growth: n^1.00" in text
    data = json.loads(json.dumps(figures.as_data()))
    assert data["growth"] == {"registers": [1.0]}
    assert data["sizes"][0]["per_s"] == [1000.0, 500.0, 250.0]


@pytest.mark.slow
def test_a_section_is_made_and_measured_in_processes_of_its_own(tmp_path: Path) -> None:
    figures = checkers_bench(
        only=["registers", "worst-refused"], sizes=[2000], repetitions=2, directory=tmp_path
    )
    assert [one.section for one in figures.sizes] == ["registers", "worst-refused"]
    assert all(len(one.costs) == 2 and min(one.per_s) > 0 for one in figures.sizes)
    assert not list(tmp_path.iterdir())


@pytest.mark.spark
def test_the_history_of_the_data_plane_is_found_valid(tmp_path: Path) -> None:
    figures = checkers_bench(only=["data-plane"], sizes=[20_000], repetitions=1, directory=tmp_path)
    assert [len(one.costs) for one in figures.sizes] == [1]


def test_a_section_that_does_not_exist_is_refused_with_those_that_do() -> None:
    ended = CliRunner().invoke(bench, ["checkers", "--only", "registers,nonsense"])
    assert ended.exit_code != 0
    assert "no section nonsense" in ended.output
    assert all(name in ended.output for name in SECTIONS)
