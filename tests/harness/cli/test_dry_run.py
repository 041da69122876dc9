"""`fencepost run --dry-run` shows what a run would do or refuse, and starts nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.system import Make
from fencepost.clusters.systems import MAKES, SYSTEMS
from fencepost.harness.cli.main import main
from fencepost.harness.cli.plan import plan_data
from fencepost.harness.prepare import releases as releases_module
from fencepost.harness.run import run as run_module
from fencepost.harness.run.plan import planned
from fencepost.harness.scenario.on_other_system import SYSTEM_KEY
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.history.failure import UsageError


@pytest.fixture(autouse=True)
def _all_releases_are_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No repository is asked."""
    monkeypatch.setattr(releases_module, "is_here", lambda _: True)
    for module in ("kafka", "kafka_zookeeper"):
        monkeypatch.setattr(f"clusters.{module}.releases.is_here", lambda _: True)


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """The plan that such a command prints."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments, "--dry-run"])
    out, err = capsys.readouterr()
    assert ended.value.code == 0, err
    assert max(map(len, out.splitlines())) <= 100
    plan: dict[str, Any] = yaml.safe_load(out)
    return plan


def test_a_plan_says_what_is_run_where_and_what_is_demanded(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("subprocess.Popen", None)
    plan = shown(
        capsys,
        *("kip-903", "--cluster", "reference", "--metadata-version", "1", "--seed", "7"),
        *("--rate", "90", "--results", "elsewhere"),
    )
    assert plan["seed"] == 7
    assert plan["results"] == "elsewhere/kip-903"
    assert plan["repeat"].startswith("fencepost run kip-903 --seed 7 --metadata-version 1")
    cluster = plan["cluster"]
    assert (cluster["make"], cluster["metadata_version"]) == ("reference", 1)
    assert cluster["expected_as"] == "3.4.1"
    assert "release" not in cluster
    assert cluster["nodes"] == {"controller": ["controller-1"], "broker": ["broker-1", "broker-2"]}
    assert (cluster["host"], cluster["disks"], cluster["proxy"]) == ("local", "shared", True)
    assert cluster["settings"]["replica.lag.time.max.ms"] == "1500"
    assert plan["topics"][0]["replicas"] == [[1, 2]]
    assert plan["workload"][0]["rate"] == 90
    assert plan["play"][1] == {"pause": "broker-2"}
    assert {"Kills", "Pauses", "Wipes", "proxy"} <= set(plan["needs"])
    assert plan["require"]["judged"] == ["stale-epoch-join", "lost-write"]
    assert plan["expect"]["verdict"] == "invalid"
    assert list(tmp_path.iterdir()) == []


def test_a_mix_is_shown_with_what_its_seed_draws(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = (
        "smoke",
        "--cluster",
        "simulated",
        "--nemesis",
        "kill,pause",
        "--time-limit",
        "30s",
    )
    one, again = (shown(capsys, *arguments, "--seed", "7") for _ in range(2))
    other = shown(capsys, *arguments, "--seed", "8")
    assert one["drawn"] == again["drawn"] != other["drawn"]
    assert one["schedule"] == other["schedule"]
    assert "    1 of 2, kill:\n" in one["schedule"]
    assert "      kill target\n" in one["schedule"]
    words = {word for step in one["drawn"]["steps"] for word in step} - {"at"}
    assert words <= {"kill", "start", "pause", "resume"}
    assert float(one["drawn"]["steps"][-1]["at"].removesuffix("s")) < 30


def test_a_control_breaks_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    plan = shown(capsys, "smoke", "--cluster", "kafka", "--nemesis", "none", "--seed", "1")
    assert plan["faults"] == "none"
    assert plan["needs"] == []
    assert plan["cluster"]["release"] == "4.3.1"


def test_programs_get_a_plan_for_each_run(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(
            [
                "run",
                "smoke",
                "--cluster",
                "simulated",
                "--seed",
                "5",
                "--runs",
                "2",
                "--dry-run",
                "--json",
            ]
        )
    plans = json.loads(capsys.readouterr().out)
    assert [plan["seed"] for plan in plans] == [5, 6]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("kip-903", "--cluster", "reference", "--no-wire"), "it takes the proxy on the links"),
        (("smoke", "--cluster", "simulated", "--nemesis", "squeeze"), "lacks the ability Squeezes"),
        (("smoke", "--cluster", "kafka", "--without-rule", "one_vote"), "--without-rule is for"),
        (("smoke", "--cluster", "reference", "--without-rule", "no"), "there is no such rule"),
        (("smoke", "--cluster", "simulated", "--host", "netns"), "are not processes"),
        (
            ("membership", "--cluster", "simulated"),
            "workload membership cannot run in virtual time",
        ),
    ],
)
def test_a_plan_is_refused_as_its_run_would_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], says: str
) -> None:
    said = []
    for flags in (["--dry-run"], []):
        with pytest.raises(SystemExit) as ended:
            main(["run", *arguments, "--seed", "1", "--results", str(tmp_path / "none"), *flags])
        assert ended.value.code == 254
        out, err = capsys.readouterr()
        assert out == ""
        said.append(err.splitlines()[-1])
    assert said[0] == said[1]
    assert says in said[0]
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("cluster", ["reference", "simulated"])
def test_an_answer_without_a_field_for_errors_is_refused_at_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], cluster: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(_ANSWERS)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(file), "--cluster", cluster, "--dry-run"])
    assert ended.value.code == 254
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"fencepost: {file}:7: play[1].answer: rule b: the wire knows no field")
    assert said.endswith("in the answer to AlterClientQuotas; drop the request instead")


_ANSWERS = """\
name: mine
cluster: {controllers: 1, brokers: 2}
topics: [{name: t, replicas: [[1, 2]]}]
workload: {kind: produce-poll, rate: 50}
play:
  - answer: {as: a, api: AlterPartition, with: POLICY_VIOLATION}
  - answer: {as: b, api: AlterClientQuotas, with: POLICY_VIOLATION}
"""


def test_a_run_carries_out_what_was_planned() -> None:
    assert run_module.planned is planned


@pytest.mark.parametrize("make", MAKES.values(), ids=str)
def test_every_scenario_that_can_be_run_has_a_plan(make: Make, tmp_path: Path) -> None:
    shown_count = 0
    for name in library():
        options = RunOptions(results=tmp_path, seed=1, command="fencepost run", cluster=make)
        try:
            scenario = load_scenario(find_scenario(name), _laid_over(make))
            plan = planned(scenario, options, lambda _: None)
        except UsageError:
            continue
        json.dumps(plan_data(plan))
        shown_count += 1
    assert shown_count >= 3


def _laid_over(make: Make) -> list[tuple[tuple[str, ...], object, str]]:
    """Lay scenarios over the make's system, if it has Kafka's roles or others stand for them."""
    system = next(one for one in SYSTEMS.values() if make in one.makes)
    has = {*(role.name for role in system.spec.roles), *system.stands_for}
    lays = system.name != "kafka" and {role.name for role in KafkaSpec.roles} <= has
    return [(SYSTEM_KEY, system.name, "--system")] if lays else []
