"""The proxy as a process of its own, and the harness's handle of it."""

import json
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from waiting import until
from wire_doubles import BROKER, CONTROLLER, LINK, beat_request, join_request

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError, UsageError
from fencepost.nemesis.wire import control
from fencepost.nemesis.wire.rules import (
    Answer,
    Clause,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
    Stall,
    Watch,
)
from fencepost.nemesis.wire.status import RuleStatus, WireStatus
from fencepost.nemesis.wire.wire import Wire

pytestmark = pytest.mark.slow

JOINS = Rule(name="join", action=Hold(), match=Match(api="AlterPartition"))


@pytest.fixture
def target() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(10)
        yield listener


@contextmanager
def wired(directory: Path, target: socket.socket) -> Iterator[tuple[Wire, Warden]]:
    link = replace(LINK, port=target.getsockname()[1], address="127.77.9.1")
    with (
        Warden(run_id="test") as warden,
        Wire(
            [link],
            warden=warden,
            directory=directory,
            log=directory / "wire.log",
            clock=Clock.start(),
        ) as wire,
    ):
        yield wire, warden


def dial(target: socket.socket) -> socket.socket:
    return socket.create_connection(("127.77.9.1", target.getsockname()[1]), timeout=10)


def test_a_request_is_held_and_released_and_its_tape_is_written(
    tmp_path: Path, target: socket.socket
) -> None:
    with wired(tmp_path, target) as (wire, _), dial(target) as near:
        wire.name_topics({"AAAAAAAAAAAAAAAAAAAABw": "t"})
        wire.add(JOINS)
        far, _ = target.accept()
        with closing(far):
            near.sendall(beat_request(1) + join_request(2))
            assert far.recv(1000) == beat_request(1)
            assert until(lambda: wire.status().rules["join"].held_now == 1)
            assert (
                wire.status().rules["join"].first
                == "AlterPartition v3 broker-1 → controller-1, t-0 isr [1, 2]"
            )
            delivery = wire.release("join")
            assert (delivery.delivered, delivery.undeliverable) == (1, 0)
            assert far.recv(1000) == join_request(2)
        assert wire.status().rules["join"].delivered_count == 1
    lines = [json.loads(line) for line in (tmp_path / "wire.jsonl").read_text().splitlines()]
    assert [line.get("action") or line["columns"]["action"] for line in lines] == [
        "forwarded",
        "held",
        "released",
    ]


def test_a_temporary_directory_too_long_for_a_socket_is_no_hindrance(
    tmp_path: Path, target: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    far_down = tmp_path / ("x" * 100)
    far_down.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(far_down))
    with wired(tmp_path, target) as (wire, _):
        assert wire.status().rules == {}


def test_partitions_and_cuts_through_the_handle(tmp_path: Path, target: socket.socket) -> None:
    with wired(tmp_path, target) as (wire, _), dial(target) as near:
        far, _ = target.accept()
        with closing(far):
            wire.block([(BROKER, CONTROLLER)])
            near.sendall(beat_request(1))
            assert until(lambda: wire.status().withheld_bytes[BROKER, CONTROLLER] > 0)
            assert not wire.probe(BROKER, CONTROLLER, timeout_s=0.05)
            wire.unblock([(BROKER, CONTROLLER)])
            assert far.recv(1000) == beat_request(1)
            assert wire.status().connection_count[BROKER, CONTROLLER] >= 1
            assert wire.cut([(BROKER, CONTROLLER)]) >= 1
            with pytest.raises(ConnectionResetError):
                near.recv(1)


def test_a_probe_gets_its_answer_through_the_link_or_directly(
    tmp_path: Path, target: socket.socket
) -> None:
    def answer() -> None:
        far, _ = target.accept()
        with closing(far):
            far.recv(1000)
            far.sendall(bytes.fromhex("0000000a 00000001 0000 00000000"))
            far.recv(1000)

    thread = threading.Thread(target=answer)
    with wired(tmp_path, target) as (wire, _):
        thread.start()
        assert wire.probe(BROKER, CONTROLLER, timeout_s=10)
        thread.join()
        thread = threading.Thread(target=answer)
        thread.start()
        wire.block([(BROKER, CONTROLLER)])
        assert wire.probe_directly(CONTROLLER, timeout_s=10)
    thread.join()


def test_a_port_in_use_is_named(tmp_path: Path, target: socket.socket) -> None:
    port = target.getsockname()[1]
    with (
        socket.create_server(("127.77.9.1", port)),
        pytest.raises(HarnessError, match=rf"cannot listen on 127\.77\.9\.1:{port}"),
        wired(tmp_path, target),
    ):
        pass


def test_impossible_rules_are_refused(tmp_path: Path, target: socket.socket) -> None:
    with wired(tmp_path, target) as (wire, _):
        wire.add(JOINS)
        with pytest.raises(HarnessError, match="a rule named join is active already"):
            wire.add(JOINS)
        with pytest.raises(HarnessError, match="no rule x is active"):
            wire.release("x")
        with pytest.raises(UsageError, match="Kafka has no API Nope"):
            wire.add(Rule(name="x", action=Hold(), match=Match(api="Nope")))
        match = Match(sources=(NodeName("broker-9"),))
        with pytest.raises(UsageError, match="no link has broker-9 as its source"):
            wire.add(Rule(name="x", action=Hold(), match=match))
        assert list(wire.status().rules) == ["join"]


DIED = r"the proxy \(pid \d+\) ended with exit code -9"


def kill_and(then: Callable[[Wire], object], directory: Path, target: socket.socket) -> None:
    """Kill a proxy, and go on with its handle until that is closed."""
    with wired(directory, target) as (wire, warden):
        warden.signal(wire.pid, SIGKILL)
        then(wire)


def test_a_proxy_that_died_says_so(tmp_path: Path, target: socket.socket) -> None:
    def ask(wire: Wire) -> None:
        with pytest.raises(HarnessError, match=DIED):
            wire.status()

    with pytest.raises(HarnessError, match=DIED):
        kill_and(ask, tmp_path, target)


def test_a_proxy_that_died_after_the_last_question_is_noticed_at_the_end(
    tmp_path: Path, target: socket.socket
) -> None:
    with pytest.raises(HarnessError, match=DIED):
        kill_and(lambda _: None, tmp_path, target)


def test_the_end_of_a_proxy_never_hides_the_first_error(
    tmp_path: Path, target: socket.socket
) -> None:
    def fail(_: Wire) -> None:
        raise RuntimeError("the first")

    with pytest.raises(RuntimeError, match="the first") as caught:
        kill_and(fail, tmp_path, target)
    assert "ended with exit code -9" in caught.value.__notes__[0]


def test_a_closed_proxy_answers_no_more(tmp_path: Path, target: socket.socket) -> None:
    with wired(tmp_path, target) as (wire, warden):
        wire.close()
        wire.close()
        assert warden.exit_code(wire.pid) == 0
        with pytest.raises(HarnessError, match="the proxy is closed"):
            wire.status()


names = st.sampled_from([NodeName("broker-1"), NodeName("controller-1")])
clauses = st.builds(
    Clause,
    field=st.sampled_from(["isr", "topic"]),
    operator=st.sampled_from(Operator),
    value=st.one_of(st.booleans(), st.integers(), st.text(), st.tuples(st.integers())),
)
matches = st.builds(
    Match,
    direction=st.sampled_from(Direction),
    api=st.sampled_from([None, "Fetch"]),
    version_min=st.none() | st.integers(),
    sources=st.lists(names).map(tuple),
    client_id=st.none() | st.text(),
    where=st.lists(clauses).map(tuple),
    skip=st.integers(0),
)
actions = st.sampled_from(
    [
        Answer(error="NONE"),
        Cut(passed_on=False),
        Delay(min_ms=0.5, max_ms=2.5, seed=3),
        Drop(),
        Duplicate(),
        Hold(),
        LowerVersion(api="Fetch", max_version=3),
        Reorder(),
        Stall(),
        Watch(),
    ]
)


@given(st.builds(Rule, name=st.text(), action=actions, match=matches))
def test_a_rule_is_the_same_at_the_other_end(rule: Rule) -> None:
    assert control.rule_of(json.loads(json.dumps(control.rule_data(rule)))) == rule


def test_a_status_is_the_same_at_the_other_end() -> None:
    rule = RuleStatus(
        matched_count=1,
        held_count=2,
        held_now=3,
        delivered_count=4,
        undeliverable_count=5,
        first="AlterPartition",
        first_ns=6,
    )
    status = WireStatus(
        rules={"join": rule},
        withheld_bytes={(BROKER, CONTROLLER): 7},
        connection_count={(BROKER, CONTROLLER): 8},
        broken=("one",),
        broken_count=9,
        cpu_s=0.5,
    )
    data: Any = json.loads(json.dumps(control.status_data(status)))
    assert control.status_of(data) == status
