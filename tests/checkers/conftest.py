"""One Spark session for all tests of the checkers that need one."""

from collections.abc import Iterator

import pytest

from checkers.runner.session import spark_session
from checkers.runner.spark_tasks import SparkTasks
from clusters.provision.java import find_java, spark_java_home


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkTasks]:
    session = spark_session(java_home=spark_java_home(find_java()), master="local[2]")
    yield SparkTasks(session)
    session.stop()
