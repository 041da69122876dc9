"""One Spark session for all tests of the checkers that need one."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from checkers.runner.session import spark_session
from clusters.provision.java import find_java, spark_java_home


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session(java_home=spark_java_home(find_java()), master="local[2]")
    yield session
    session.stop()
