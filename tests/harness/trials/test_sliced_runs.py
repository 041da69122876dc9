"""A run that is cut into slices is judged as it is whole: every check, to the last sentence."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Verdict
from fencepost.harness.trials.plan import TrialPlan, drawn_plan
from fencepost.harness.trials.store import store_trial
from fencepost.harness.trials.zk_plan import drawn_zk_plan
from fencepost.history.run_directory import RunDirectory

pytestmark = pytest.mark.slow

Words = Mapping[str, Counter[str]]


def told(run: RunDirectory, verdict: Verdict) -> tuple[list[tuple[Any, ...]], Words]:
    """The counts of every check, and the sentences of its anomalies."""
    counts = [
        (one.check, one.validity, one.case_count, one.anomaly_count, one.allowed_count)
        for one in verdict.checks
    ]
    files = sorted(run.anomalies.glob("*.parquet"))
    return counts, {file.stem: Counter(pq.read_table(file)["detail"].to_pylist()) for file in files}


@pytest.mark.parametrize(
    ("plan", "off"),
    [
        pytest.param(drawn_plan(3), "", id="clean"),
        pytest.param(drawn_plan(2), "epoch_from_offset", id="an epoch given twice"),
        pytest.param(drawn_plan(4), "member_epochs_checked", id="joins of old incarnations"),
        pytest.param(drawn_plan(105), "fenced_leaves_isr", id="fenced members"),
        pytest.param(drawn_plan(15), "live_id_refused", id="ids given away"),
        pytest.param(drawn_plan(6), "fenced_serves_nobody", id="fenced brokers that serve"),
        pytest.param(drawn_zk_plan(3), "", id="clean, on ZooKeeper"),
        pytest.param(drawn_zk_plan(5), "broker_epoch_checked", id="old requests, on ZooKeeper"),
    ],
)
def test_slices_are_judged_as_the_whole_is(plan: TrialPlan, off: str, tmp_path: Path) -> None:
    trial = store_trial(plan, without_rules=(off,) if off else (), root=tmp_path / "run", name="s")
    run, session = trial.run, InProcessTasks()
    verdict = check_run(run, session=session)
    whole = told(run, verdict)
    sliced = told(run, check_run(run, session=session, slice_rows=700))
    assert sliced == whole
    assert not [one.check for one in verdict.checks if "crashed" in one.reason]
    assert sum(count for _, _, count, *_ in whole[0]) > 100
