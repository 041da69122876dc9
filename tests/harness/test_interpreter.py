"""Schedules performed on a cluster in memory: what is done, what is written down, how it ends."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from fake_cluster import NODES, FakeCluster

from clusters.port import NodeState
from harness.interpreter import Interpreter
from harness.observer import Observer
from harness.performer import Performer
from history.clock import Clock
from history.failure import HarnessError
from history.journal import FaultJournal
from history.reader import load_table
from history.run_directory import RunDirectory
from nemesis.mix import Mix, MixSpec
from nemesis.play import Play, Stage, parse_play

STAGE = Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3))


class Bench:
    """A cluster in memory and everything that drives it."""

    def __init__(self, directory: Path, *, acknowledged: Callable[[], int] = lambda: 0) -> None:
        self.run = RunDirectory(directory)
        self.run.raw.mkdir()
        self.cluster = FakeCluster()
        self.journal = FaultJournal(self.run.raw, Clock.start())
        self.performer = Performer(self.cluster, journal=self.journal, play_path=self.run.play_path)
        self.observer = Observer(self.cluster, acknowledged=acknowledged)
        self.interpreter = Interpreter(
            cluster=self.cluster,
            performer=self.performer,
            observer=self.observer,
            draw=random.Random(1),
            on_tick=lambda _now_s, _now: None,
        )

    def performed(self) -> list[dict[str, object]]:
        found = yaml.safe_load(self.run.play_path.read_text())
        return [{key: step[key] for key in step if key != "at"} for step in found]

    def faults(self) -> pa.Table:
        self.journal.close()
        return load_table(self.run, "faults")


@contextmanager
def bench(directory: Path, acknowledged: Callable[[], int] = lambda: 0) -> Iterator[Bench]:
    built = Bench(directory, acknowledged=acknowledged)
    with built.observer:
        yield built


def play(*steps: object) -> Play:
    return parse_play(list(steps), STAGE)


def test_a_play_is_performed_in_order_and_written_down_with_the_nodes_it_came_to(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"kill": "leader of t-0"},
            {"await": {"leader": {"t-0": 2}}},
            {"wipe": "broker-1"},
            {"start": "broker-1"},
            {"await": "recovered"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert b.cluster.calls == ["kill broker-1", "wipe broker-1", "start broker-1"]
        assert b.performed()[0] == {"kill": "broker-1"}
        assert len(parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)) == 5
        faults = b.faults().to_pylist()
    assert [(row["fault"], row["targets"]) for row in faults] == [
        ("kill", ["broker-1"]),
        ("wipe", ["broker-1"]),
    ]
    for row in faults:
        assert row["begin_ns"] <= row["effect_ns"] <= row["end_ns"]


def test_an_await_that_passes_its_bound_ends_the_play_and_is_named(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"await": {"leader": {"t-0": 3}}, "within": "200ms"}, {"kill": "broker-2"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.cluster.calls == []
        (shortfall,) = b.interpreter.shortfalls
    assert "step 1 of 2" in shortfall
    assert "its bound passed" in shortfall


def test_an_await_counts_acknowledged_sends_from_its_own_begin(tmp_path: Path) -> None:
    count = iter(range(100, 10_000, 3))
    with bench(tmp_path, acknowledged=lambda: next(count)) as b:
        b.interpreter.perform_play(play({"await": {"acknowledged": 30}}), time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert next(count) >= 130


def test_a_play_stops_at_the_time_limit_of_the_run(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"wait": "200ms"}, {"kill": "broker-1"}), time_limit_s=0.1)
        assert b.cluster.calls == []
        assert "the time limit of the run passed" in b.interpreter.shortfalls[0]


def test_healing_resumes_the_paused_and_starts_the_dead(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"kill": "broker-1"}, {"pause": ["broker-2", "broker-3"]})
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        assert set(b.cluster.states.values()) == {NodeState.RUNNING}
        assert {row["end_ns"] is None for row in b.faults().to_pylist()} == {False}


def test_a_cluster_that_does_not_recover_is_a_shortfall_that_says_what_is_missing(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"kill": "broker-3"}), time_limit_s=20)
        b.cluster.view = lambda: (_ for _ in ()).throw(HarnessError("nobody"))  # type: ignore[method-assign]
        b.interpreter.heal(limit_s=0.3)
        (shortfall,) = b.interpreter.shortfalls
    assert "not whole 0.3 s after healing: no broker answers" in shortfall


def test_a_node_that_does_not_start_again_ends_the_play_with_its_name(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.cluster.deaf_to_start.add(NODES[1])
        steps = play({"kill": "broker-1"}, {"start": "broker-1"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert "broker-1: does not run after start" in b.interpreter.shortfalls[0]


def test_a_node_that_dies_by_itself_is_told_from_one_that_we_killed(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"kill": "broker-1"}), time_limit_s=20)
        b.cluster.states[NODES[2]] = NodeState.DOWN
        assert b.performer.died_by_themselves() == (NODES[2],)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_a_mix_performed_can_be_read_back_as_a_play(tmp_path: Path, seed: int) -> None:
    spec = MixSpec(
        faults=("kill", "pause", "restart", "wipe"), gap_s=(0.0, 0.1), duration_s=(0.1, 0.3)
    )
    with bench(tmp_path) as b:
        b.interpreter.perform_mix(Mix(spec, random.Random(seed), ("t-0",)), time_limit_s=2)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        assert len(b.cluster.calls) > 4
    assert parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)
