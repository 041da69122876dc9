"""The bench of a stored run: memory by process, and what is no run is refused."""

import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner

from fencepost.bench.check import CheckFigures, check_bench
from fencepost.bench.command import bench
from fencepost.bench.measuring import Cost, _Tree, measured
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.long_histories import write_long_synthetic_run
from fencepost.history.run_directory import RunDirectory

_PARENT = """
import subprocess, sys
subprocess.run([sys.executable, "-m", "timeit", "-n1", "-r1", "__import__('sys').stdin.read()"])
"""
_SAMPLES_MAX = 6000


def test_memory_of_another_process_is_told_by_program() -> None:
    command = [sys.executable, "-c", _PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as parent:
        assert parent.stdin is not None
        tree = _Tree(psutil.Process(parent.pid))
        for _ in range(_SAMPLES_MAX):
            tree.sample()
            if "timeit" in tree.by_program():
                break
            time.sleep(0.01)
        parent.stdin.close()
    found = tree.by_program()
    assert "timeit" in found
    assert len(found) == 2
    assert tree.rss_bytes_max >= max(size for sizes in found.values() for size in sizes)
    tree.sample()  # a tree that has ended is no error


def test_a_cost_of_work_in_this_process_has_its_program() -> None:
    assert measured(lambda: None).by_program


def test_figures_tell_the_largest_worker_and_the_memory_in_all() -> None:
    cost = Cost(
        seconds=2.0,
        cpu_s=3.0,
        rss_bytes_max=900 << 20,
        by_program={
            "pyspark.daemon": (300 << 20, 200 << 20, 30 << 20),
            "java": (400 << 20,),
            "fencepost": (100 << 20,),
        },
    )
    lines = [line.split() for line in CheckFigures(command="x", costs=(cost,)).lines()]
    assert [line[-1] for line in lines[1:]] == ["2.0", "3.0", "900", "300", "400", "100"]


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    ended = CliRunner().invoke(bench, ["check", "nothing", "--results", str(tmp_path)])
    assert ended.exit_code != 0
    assert "nothing" in str(ended.exception)


@pytest.mark.spark
def test_a_stored_run_is_judged_and_measured(tmp_path: Path) -> None:
    write_long_synthetic_run(RunDirectory(tmp_path / "run"), HistoryRecipe(sends=500, keys=2))
    figures = check_bench(str(tmp_path / "run"), results=tmp_path, runs=1)
    (cost,) = figures.costs
    assert {"pyspark.daemon", "java", "fencepost"} <= set(cost.by_program)
