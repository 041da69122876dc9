"""What `fencepost simulate` says of a series."""

import json

import pytest

from fencepost.clusters.reference.oracle.finding import Finding
from fencepost.harness.cli.main import main
from fencepost.harness.cli.simulating import _say_tally, _tally_json
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.series import TrialTally
from fencepost.harness.trials.trial import TrialResult
from fencepost.harness.trials.zk_plan import drawn_zk_plan

WHY = "t-0: every member of its ISR [1] had lost its disk"


def result(
    seed: int, *, excused: tuple[str, ...] = (), findings: tuple[Finding, ...] = ()
) -> TrialResult:
    return TrialResult(
        seed=seed,
        storm="windows",
        findings=findings,
        excused=excused,
        crash="",
        event_count=1,
        virtual_ns=1,
        acknowledged_count=1,
        cpu_s=0.1,
    )


def test_the_trials_that_are_no_evidence_are_named_with_the_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally, later = TrialTally(), TrialTally()
    for seed in range(1, 5):
        tally.add(result(seed, excused=(WHY,) if seed > 1 else ()))
    later.add(result(9, excused=(WHY, WHY.replace("t-0", "t-1"))))
    tally.merge(later)
    _say_tally(tally, "fencepost simulate storm")
    said = " ".join(capsys.readouterr().out.split())
    assert f"excused: seed 2 (windows): {WHY}" in said
    assert "excused likewise: seeds 9" in said
    assert "5 seeds: 1 clean, 4 excused (no evidence), 0 found something" in said
    told = _tally_json(tally)
    assert (told["excused"], told["clean"]) == (4, 1)
    assert told["excused_seeds"][-1] == {
        "seed": 9,
        "storm": "windows",
        "reasons": [WHY, WHY.replace("t-0", "t-1")],
    }


@pytest.mark.parametrize("system", ["kafka", "reference-zookeeper"])
def test_a_dry_run_prints_each_schedule_that_the_seeds_have(
    capsys: pytest.CaptureFixture[str], system: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["simulate", "storm", "--seeds", "60", "--system", system, "--dry-run", "--json"])
    assert ended.value.code == 0
    shown = json.loads(capsys.readouterr().out)
    plans = [(drawn_plan if system == "kafka" else drawn_zk_plan)(seed) for seed in range(1, 61)]
    storms = {str(plan.storm) for plan in plans} - {str(Storm.QUORUM)}
    assert storms <= {one["schedule"] for one in shown}
    laggards = [one["seeds"] for one in shown if one["schedule"] == "laggards"]
    assert sum(laggards) == sum(plan.laggards for plan in plans)
    assert all(one["printed"] for one in shown)
