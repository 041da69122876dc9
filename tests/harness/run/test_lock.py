"""One run at a time on a machine."""

from contextlib import ExitStack
from pathlib import Path
from threading import Timer

import pytest

from fencepost.harness.run.lock import WAIT_VARIABLE, only_run
from fencepost.history.failure import UsageError


@pytest.mark.usefixtures("refused_at_once")
def test_a_second_run_is_refused_with_the_place_of_the_first(tmp_path: Path) -> None:
    with only_run(tmp_path, what="smoke on Kafka 4.3.1", alongside=False):
        with pytest.raises(UsageError, match=r"under way: smoke on Kafka 4.3.1 \(pid \d+\); wait"):
            only_run(tmp_path, what="another", alongside=False).__enter__()
        with only_run(tmp_path, what="another", alongside=True):
            pass
    with only_run(tmp_path, what="the next", alongside=False):
        pass


def test_a_run_that_may_wait_begins_when_the_other_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as first:
        first.enter_context(only_run(tmp_path, what="the first", alongside=False))
        monkeypatch.setenv(WAIT_VARIABLE, "0.01")
        with pytest.raises(UsageError, match="under way: the first"):
            only_run(tmp_path, what="another", alongside=False).__enter__()
        monkeypatch.setenv(WAIT_VARIABLE, "60")
        ended: list[bool] = []
        ending = Timer(0.2, lambda: (ended.append(True), first.pop_all().close()))
        ending.start()
        with only_run(tmp_path, what="the next", alongside=False):
            assert ended
        ending.join()


def test_what_is_no_time_to_wait_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(WAIT_VARIABLE, "long")
    with pytest.raises(UsageError, match="FENCEPOST_WAIT_S must be a number of seconds, found"):
        only_run(tmp_path, what="any", alongside=False).__enter__()
