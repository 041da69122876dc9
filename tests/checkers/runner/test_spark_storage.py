"""What Spark alone can read, and what workers are allowed, on a real session."""

from pathlib import Path

import pytest

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.mirror import mirrored
from fencepost.checkers.runner.spark_tasks import SparkTasks
from fencepost.checkers.verdict import Validity
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.spark

_MOUNT = "viewfs://far/"
"""A file system that Hadoop knows and pyarrow does not."""


@pytest.fixture
def far(tmp_path: Path, spark: SparkTasks) -> RunDirectory:
    run = RunDirectory(tmp_path / "far" / "one")
    write_synthetic_run(run, HistoryRecipe(sends=2000, lies=("lost-write",)))
    link = "fs.viewfs.mounttable.far.link./runs"
    spark.spark._jsc.hadoopConfiguration().set(link, run.root.parent.as_uri())
    spark.spark._jsc.hadoopConfiguration().set("fs.viewfs.impl.disable.cache", "true")
    return run


def test_a_run_on_a_file_system_of_sparks_own_is_judged(
    tmp_path: Path, spark: SparkTasks, far: RunDirectory
) -> None:
    copy = mirrored(
        f"{_MOUNT}runs/one", results=tmp_path / "here", session=lambda: spark.spark, elsewhere=False
    )
    verdict = check_run(copy, session=spark)
    assert verdict.validity is Validity.INVALID
    assert copy.verdict_path.exists()
    assert not far.verdict_path.exists()
    assert not list(copy.root.rglob(".*.crc"))


@pytest.mark.usefixtures("far")
def test_tasks_elsewhere_cannot_read_it_and_that_is_said(tmp_path: Path, spark: SparkTasks) -> None:
    with pytest.raises(HarnessError, match="tasks on other machines cannot read viewfs://"):
        mirrored(
            f"{_MOUNT}runs/one",
            results=tmp_path / "here",
            session=lambda: spark.spark,
            elsewhere=True,
        )


def test_an_unknown_scheme_is_named(tmp_path: Path, spark: SparkTasks) -> None:
    with pytest.raises(HarnessError, match='No FileSystem for scheme "nowhere"'):
        mirrored(
            "nowhere://a/b", results=tmp_path / "x", session=lambda: spark.spark, elsewhere=False
        )
