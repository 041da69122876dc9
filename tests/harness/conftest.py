"""Commands of ours in this process: Spark starts once for all of them, and for some not at all."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Ended, Fencepost
from shipped_tasks import ShippedTasks
from waiting import until

from fencepost.clusters.hosts.process import orphans
from fencepost.harness.cli.main import main
from fencepost.harness.run.lock import WAIT_VARIABLE
from fencepost.harness.run.spark_start import SparkStart


@pytest.fixture
def nothing_is_left_behind() -> Iterator[None]:
    """No process of the test's runs outlives it. Other runs of this machine may be about to end."""
    before = set(orphans())
    yield
    assert until(lambda: set(orphans()) <= before), orphans()


@pytest.fixture
def refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is refused beside another one, as on a user's machine; those of tests wait."""
    monkeypatch.delenv(WAIT_VARIABLE)


@pytest.fixture
def fencepost(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Fencepost:
    """Run `fencepost …`; `results`: where its runs are stored.

    A test that is marked so judges them on Spark, any other one in this process.
    """
    if request.node.get_closest_marker("spark") is None:
        monkeypatch.setattr(SparkStart, "begin", lambda _: None)
        monkeypatch.setattr(SparkStart, "session", lambda _: None)
        for user in ("fencepost.harness.run.judge", "fencepost.checkers.runner.spark_tasks"):
            monkeypatch.setattr(f"{user}.SparkTasks", lambda *_, **__: ShippedTasks())

    def call(*arguments: str, results: Path) -> Ended:
        monkeypatch.setenv("FENCEPOST_RESULTS", str(results))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert isinstance(ended.value.code, int)
        captured = capsys.readouterr()
        return Ended(returncode=ended.value.code, stdout=captured.out, stderr=captured.err)

    return call
