"""Faults of client processes: performed, written down, healed with everything else."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from interpreter_doubles import STAGE, Bench, FakeClients, play

from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.history.failure import SpecError
from fencepost.nemesis.clients import ControlsClients
from fencepost.nemesis.play import parse_play


class ClientBench(Bench):
    """A run in memory whose clients can be broken, too."""

    def __init__(self, directory: Path, clients: ControlsClients | None) -> None:
        super().__init__(directory)
        old = self.interpreter
        self.interpreter = Interpreter(
            cluster=self.cluster,
            performer=self.performer,
            network=self.network,
            clients=ClientFaults(clients, journal=self.journal, played=old.played),
            played=old.played,
            observer=self.observer,
            draw=random.Random(1),
            on_tick=lambda _now_s, _now: None,
        )


@pytest.fixture
def clients() -> FakeClients:
    return FakeClients()


@pytest.fixture
def bench(tmp_path: Path, clients: FakeClients) -> Iterator[ClientBench]:
    built = ClientBench(tmp_path, clients)
    with built.observer:
        yield built


def test_a_crash_takes_effect_at_the_kill_and_ends_with_the_new_process(
    bench: ClientBench, clients: FakeClients
) -> None:
    bench.interpreter.perform_play(play({"crash_client": "all producers"}), time_limit_s=5)
    assert bench.interpreter.shortfalls == []
    assert clients.calls == [
        "crash producer-0",
        "back producer-0",
        "crash producer-1",
        "back producer-1",
    ]
    assert bench.performed() == [{"crash_client": "producer-0"}, {"crash_client": "producer-1"}]
    rows = bench.faults().to_pylist()
    assert [(row["fault"], row["kind"], row["targets"]) for row in rows] == [
        ("crash_client", "crash_client", [name]) for name in ("producer-0", "producer-1")
    ]
    assert all(row["begin_ns"] <= row["effect_ns"] <= row["end_ns"] for row in rows)


def test_a_paused_client_goes_on_by_its_name_or_its_role(
    bench: ClientBench, clients: FakeClients
) -> None:
    steps = play(
        {"pause_client": "producer-1"},
        {"pause_client": "one consumer"},
        {"resume_client": "all producers"},
    )
    bench.interpreter.perform_play(steps, time_limit_s=5)
    assert clients.calls == ["pause producer-1", "pause consumer-0", "resume producer-1"]
    assert bench.interpreter.clients.open_labels == ("pause_client consumer-0",)


def test_whatever_is_paused_goes_on_when_everything_is_healed(
    bench: ClientBench, clients: FakeClients
) -> None:
    bench.interpreter.perform_play(
        play({"pause_client": "all producers"}, {"heal": "all"}), time_limit_s=10
    )
    assert clients.calls[2:] == ["resume producer-0", "resume producer-1"]
    assert all(row["end_ns"] is not None for row in bench.faults().to_pylist())


def test_a_paused_client_that_crashes_is_paused_no_more(
    bench: ClientBench, clients: FakeClients
) -> None:
    steps = play({"pause_client": "producer-0"}, {"crash_client": "producer-0"}, {"heal": "all"})
    bench.interpreter.perform_play(steps, time_limit_s=10)
    assert clients.calls == ["pause producer-0", "crash producer-0", "back producer-0"]
    assert all(row["end_ns"] is not None for row in bench.faults().to_pylist())


def test_a_run_whose_clients_are_no_processes_says_so(tmp_path: Path) -> None:
    bench = ClientBench(tmp_path, None)
    with bench.observer:
        bench.interpreter.perform_play(play({"crash_client": "one producer"}), time_limit_s=5)
    assert "not processes" in bench.interpreter.shortfalls[0]


@pytest.mark.parametrize("operand", ["broker-1", "producer", "two producers", ["producer-0"], 1])
def test_what_is_no_client_is_refused_at_its_place(operand: object) -> None:
    with pytest.raises(SpecError, match="expected producer-0, 'one consumer' or") as refused:
        parse_play([{"crash_client": operand}], STAGE)
    assert refused.value.path == (0, "crash_client")


def test_what_was_performed_is_read_back(bench: ClientBench) -> None:
    bench.interpreter.perform_play(play({"crash_client": "one producer"}), time_limit_s=5)
    performed = yaml.safe_load(bench.run.play_path.read_text())
    (step,) = parse_play(performed, STAGE)
    assert step.clients.text in ("producer-0", "producer-1")  # type: ignore[attr-defined]
