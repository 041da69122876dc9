"""A run judged on a cluster of processes of its own gets the verdict of local mode."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from standalone_cluster import WORKERS, StandaloneCluster, standalone_cluster

from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.history.run_directory import RunDirectory

pytestmark = [pytest.mark.spark, pytest.mark.alone]

_NO_CHECKOUT = "import pyarrow, pyspark; import fencepost"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    with standalone_cluster(tmp_path / "cluster") as started:
        yield started


def _checked(
    run: str, *, master: str, results: Path, environment: Mapping[str, str]
) -> dict[str, Any]:
    ended = subprocess.run(
        [
            *(sys.executable, "-m", "fencepost", "check", run, "--json"),
            *("--spark-master", master, "--results", str(results)),
        ],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    return json.loads(ended.stdout)[0]["checks"]


def test_executors_without_the_checkout_give_the_verdict_of_local_mode(
    tmp_path: Path, cluster: StandaloneCluster
) -> None:
    run = RunDirectory(tmp_path / "run")
    made = write_synthetic_run(run, HistoryRecipe(sends=3000, lies=("lost-write", "duplicate")))
    python = cluster.environment["PYSPARK_PYTHON"]
    blind = subprocess.run(
        [python, "-c", _NO_CHECKOUT], cwd=tmp_path, env={}, capture_output=True, check=False
    )
    assert b"No module named 'fencepost'" in blind.stderr

    afar = _checked(
        str(run.root),
        master=cluster.master,
        results=tmp_path,
        environment=cluster.environment,
    )
    near = _checked(str(run.root), master="local[2]", results=tmp_path, environment={})
    assert afar == near
    assert {name for name, check in afar.items() if check["validity"] == "invalid"} == made.raises
    places = cluster.executor_directories()
    # An executor that a busy machine lost is started again: count the workers that had one.
    assert len({place.parent.parent.name for place in places}) == WORKERS
    assert all(len(list(place.glob("fencepost-*.zip"))) == 1 for place in places)
