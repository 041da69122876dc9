"""Where the checks of a test run, and every proof held to its rule."""

from collections.abc import Iterator
from typing import Any

import pytest
from proving import assert_told
from shipped_tasks import ShippedTasks

from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.session import spark_session
from fencepost.checkers.runner.spark_tasks import SparkTasks
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.clusters.provision.java import find_java, spark_java_home


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkTasks]:
    session = spark_session(java_home=spark_java_home(find_java()), master="local[2]")
    yield SparkTasks(session)
    session.stop()


@pytest.fixture
def tasks(request: pytest.FixtureRequest) -> TaskSession:
    """Spark for a test that is marked so, this process for all others."""
    if request.node.get_closest_marker("spark") is None:
        return ShippedTasks()
    session: TaskSession = request.getfixturevalue("spark")
    return session


@pytest.fixture(scope="module", autouse=True)
def every_proof_is_told() -> Iterator[None]:
    """Hold every proof that a test here stores in its process to its rule, too."""
    columns = Proof.columns

    def told(proof: Proof) -> dict[str, Any]:
        assert_told(proof)
        return columns(proof)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Proof, "columns", told)
        yield
