"""What a worker may take, and what becomes of a check that wants more."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.check import check_run
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.runner.memory import MAPPED_BYTES, machine_memory_bytes
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.verdict import Validity
from fencepost.generators.draft import HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.spark

_TOO_MUCH = machine_memory_bytes() + MAPPED_BYTES
"""More than the share of any worker, less than the machine itself would refuse."""


def test_a_check_that_wants_more_than_its_share_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def greedy(log: KeyLog) -> Found:
        if log.key == "t-0":
            np.empty(_TOO_MUCH, dtype=np.uint8)
        return none("vanished", log.key, cases=0)

    run = RunDirectory(tmp_path / "run")
    write_synthetic_run(run, HistoryRecipe(sends=3000, lies=("duplicate",)))
    checks = {
        "duplicate": KEY_CHECKS["duplicate"],
        "vanished": replace(KEY_CHECKS["vanished"], kernel=greedy),
    }
    verdict = check_run(run, session=tasks, checks=checks)
    found = {result.check: result for result in verdict.checks}
    assert found["duplicate"].validity is Validity.INVALID
    assert found["vanished"].validity is Validity.UNKNOWN
    assert "out of its" in found["vanished"].reason
    assert found["vanished"].figures["keys_unknown_count"] == 1
    assert found["vanished"].figures["keys_count"] > 1
