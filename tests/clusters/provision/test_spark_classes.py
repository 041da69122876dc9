"""Spark starts from an archive of its classes, and starts without one if that cannot be made."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import find_java, spark_java_home
from fencepost.clusters.provision.spark_classes import spark_class_archive

PROGRAM = """
import sys
from pathlib import Path
from fencepost.checkers.runner.session import spark_session
spark = spark_session(java_home=Path(sys.argv[1]), class_archive=Path(sys.argv[2]))
print(spark.range(5).selectExpr("sum(id)").first()[0])
spark.stop()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_an_archive_is_made_once_and_fits_the_sessions_of_the_checks() -> None:
    """In the cache of this machine: making one takes a minute, and whoever comes first makes it."""
    java, said = find_java(), list[str]()
    home = spark_java_home(java)
    archive = spark_class_archive(java, home=home, progress=said.append)
    assert archive is not None
    assert said in ([], ["learning to start Spark quickly"])
    said.clear()
    assert spark_class_archive(java, home=home, progress=said.append) == archive
    assert said == []
    # With this option a JVM that cannot use the archive that it is given does not start.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(home), str(archive)],
        env={**os.environ, "JAVA_TOOL_OPTIONS": "-Xshare:on"},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["10"]


def test_without_an_archive_spark_starts_slowly_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    broken = tmp_path / "java"
    (broken / "bin").mkdir(parents=True)
    (broken / "bin" / "java").write_text("#!/bin/sh\necho no such machine >&2\nexit 3\n")
    (broken / "bin" / "java").chmod(0o755)
    java, said = replace(find_java(), home=broken), list[str]()
    assert spark_class_archive(java, home=broken, progress=said.append) is None
    assert said[0] == "learning to start Spark quickly"
    assert said[-1].startswith("starts of Spark will be slow: python")
