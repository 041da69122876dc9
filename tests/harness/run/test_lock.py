"""One run at a time on a machine."""

from pathlib import Path

import pytest

from harness.run.lock import only_run
from history.failure import UsageError


def test_a_second_run_is_refused_with_the_place_of_the_first(tmp_path: Path) -> None:
    with only_run(tmp_path, what="smoke on Kafka 4.3.1", alongside=False):
        with pytest.raises(UsageError, match=r"under way: smoke on Kafka 4.3.1 \(pid \d+\); wait"):
            only_run(tmp_path, what="another", alongside=False).__enter__()
        with only_run(tmp_path, what="another", alongside=True):
            pass
    with only_run(tmp_path, what="the next", alongside=False):
        pass
