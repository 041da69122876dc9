"""The small parts of the harness: seeds, the lock, expectations, replays, what is left behind."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from checkers.verdict import CheckResult, Validity, Verdict
from harness.doctor.clean import clean_machine
from harness.run.lock import only_run
from harness.run.record import unread
from harness.run.replay import replayed
from harness.scenario.expectation import expectation_for, is_met, parse_expectations
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import find_scenario
from harness.seeds import stream, stream_seed
from history.failure import SpecError, UsageError
from history.manifest import Manifest, Promises, RunState, read_manifest, write_manifest
from history.run_directory import RunDirectory
from nemesis.play import step_data, step_word
from nemesis.verbs.step import OnNodes


def test_a_stream_is_the_same_on_every_machine_and_independent_of_the_others() -> None:
    assert stream_seed(7, "nemesis") == 1_832_843_859
    assert stream(7, "mix").random() == stream(7, "mix").random()
    assert stream(7, "mix").random() != stream(7, "nemesis").random()
    assert stream(7, "mix").random() != stream(8, "mix").random()


def test_a_second_run_is_refused_with_the_place_of_the_first(tmp_path: Path) -> None:
    with only_run(tmp_path, what="smoke on Kafka 4.3.1", alongside=False):
        with pytest.raises(UsageError, match=r"under way: smoke on Kafka 4.3.1 \(pid \d+\); wait"):
            only_run(tmp_path, what="another", alongside=False).__enter__()
        with only_run(tmp_path, what="another", alongside=True):
            pass
    with only_run(tmp_path, what="the next", alongside=False):
        pass


def verdict(**validities: Validity) -> Verdict:
    return Verdict.of(
        (
            CheckResult(check=check.replace("_", "-"), validity=validity)
            for check, validity in validities.items()
        ),
        run_id="t/1",
    )


LOST = verdict(lost_write=Validity.INVALID, duplicate=Validity.VALID)


@pytest.mark.parametrize(
    ("release", "found", "as_expected"),
    [
        ("3.4.1", LOST, True),
        ("3.4.1", verdict(lost_write=Validity.VALID), False),
        ("3.4.1", verdict(duplicate=Validity.INVALID), False),
        ("3.5.2", LOST, False),
        ("3.5.2", verdict(lost_write=Validity.UNKNOWN), False),
        ("4.4.0-SNAPSHOT", verdict(lost_write=Validity.VALID), True),
    ],
)
def test_the_first_expectation_that_fits_the_release_counts(
    release: str, found: Verdict, *, as_expected: bool
) -> None:
    expected = parse_expectations(
        [{"kafka": "<3.5", "invalid": ["lost-write"]}, {"kafka": ">=3.5", "valid": True}]
    )
    chosen = expectation_for(expected, release=release)
    assert chosen is not None
    assert is_met(chosen, found) is as_expected


def test_an_expectation_of_levels_is_about_clusters_of_our_own_alone() -> None:
    expected = parse_expectations(
        [{"level": "<3", "invalid": ["lost-write"]}, {"level": ">=3", "valid": True}]
    )
    assert expectation_for(expected, release="4.3.1") is None
    of_level = {
        level: expectation_for(expected, release="4.3.1", level=level) for level in (1, 2, 3)
    }
    assert [of_level[1], of_level[2], of_level[3]] == [expected[0], expected[0], expected[1]]
    with pytest.raises(SpecError, match="no 'kafka' or 'tried' beside"):
        parse_expectations([{"level": "<3", "kafka": ">=3.5", "valid": True}])


def manifest(**changes: object) -> Manifest:
    made = Manifest(
        run_id="s/1",
        state=RunState.RUNNING,
        scenario="s",
        title="s",
        seed=1,
        started_at="2026-01-01T00:00:00+00:00",
        origin_ns=0,
        command="fencepost run s",
        fencepost_version="1",
        promises=Promises(idempotent=True, acks="all", consume="assign"),
    )
    return replace(made, **changes)  # type: ignore[arg-type]  # by name


def dead_pid() -> int:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_a_run_whose_harness_is_dead_is_closed_and_a_living_one_is_left(tmp_path: Path) -> None:
    for name, pid in (("20260101T000000Z", dead_pid()), ("20260101T000001Z", os.getpid())):
        run = RunDirectory(tmp_path / "s" / name)
        run.root.mkdir(parents=True)
        write_manifest(run.manifest_path, manifest(harness_pid=pid))
    (line,) = clean_machine(tmp_path)
    assert "20260101T000000Z as failed: the harness died while it recorded" in line
    states = [read_manifest(p).state for p in sorted(tmp_path.glob("s/2*/manifest.json"))]
    assert states == [RunState.FAILED, RunState.RUNNING]
    assert clean_machine(tmp_path) == []


def test_what_cannot_be_read_of_the_disks_is_one_shortfall() -> None:
    assert unread(()) == ()
    words = "not all that lies on the disks could be read: broker-1: t-0: torn"
    assert unread(["broker-1: t-0: torn"]) == (words,)
    assert unread(["broker-1: t-0: torn", "a", "b"]) == (f"{words} and 2 more",)


def test_a_replay_is_the_runs_scenario_with_the_play_it_performed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    original = load_scenario(find_scenario("smoke"), [])
    run.scenario_path.write_text(original.document.resolved())
    run.play_path.write_text(
        "# What was performed.\n- {at: 3.5s, kill: broker-2}\n- {at: 50s, start: broker-2}\n"
    )
    scenario = replayed(run, kafka="3.9.2")
    assert scenario.cluster.release == "3.9.2"
    assert scenario.workload == original.workload
    assert scenario.mix is None
    assert [(s.at_s, step_word(s)) for s in scenario.play or () if isinstance(s, OnNodes)] == [
        (3.5, "kill"),
        (50.0, "start"),
    ]
    assert scenario.time_limit_s > 50


def test_a_replay_does_not_start_a_node_that_had_died_by_itself(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    original = load_scenario(find_scenario("smoke"), [])
    run.scenario_path.write_text(original.document.resolved())
    run.play_path.write_text(
        "- {at: 1s, kill: [broker-2, broker-3]}\n"
        "- {at: 2s, start: broker-1}\n"
        "- {at: 2s, start: broker-2}\n"
        "- {at: 3s, start: broker-3}\n"
        "- {at: 4s, start: broker-2}\n"
    )
    play = replayed(run, kafka=None).play or ()
    assert [step_data(step) for step in play][1:] == [
        {"at": "2s", "start": "broker-2"},
        {"at": "3s", "start": "broker-3"},
    ]


def test_a_run_that_performed_nothing_cannot_be_replayed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="performed no play"):
        replayed(RunDirectory(tmp_path), kafka=None)
