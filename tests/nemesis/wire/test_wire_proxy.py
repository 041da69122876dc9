"""The running proxy, between scripted peers on real sockets."""

import socket

import pytest
from wire_doubles import (
    BROKER,
    CONTROLLER,
    beat_request,
    beat_response,
    join_request,
    join_response,
    plain_request,
    plain_response,
)
from wire_stage import OTHER, Stage

from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    Match,
    Operator,
    Reorder,
    Stall,
)
from fencepost.nemesis.wire.server import Proxy

JOINS = Match(api="AlterPartition")
BACKLOG = 4 << 20
THERE, BACK = (BROKER, CONTROLLER), (CONTROLLER, BROKER)


def test_bytes_go_both_ways_and_the_tape_has_them(stage: Stage) -> None:
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.gets(far, join_request(1))
    far.socket.send(join_response(1))
    stage.gets(near, join_response(1))
    assert stage.notes.fates() == [
        ("AlterPartition", "request", "forwarded"),
        ("AlterPartition", "response", "forwarded"),
    ]
    assert stage.proxy.status().connection_count == {THERE: 1}


def test_the_end_of_either_side_ends_the_other(stage: Stage) -> None:
    near, far = stage.pair()
    near.socket.close()
    assert stage.ends(far) == "end"
    far.socket.close()
    stage.until(lambda: not stage.proxy.status().connection_count)
    near, far = stage.pair()
    stage.settle()
    far.kill()
    assert stage.ends(near) == "end"
    near.socket.close()
    stage.until(lambda: not stage.proxy.status().connection_count)


def test_a_client_that_ends_its_side_still_gets_its_answer(stage: Stage) -> None:
    near, far = stage.pair()
    near.socket.send(beat_request(1))
    near.socket.shutdown(socket.SHUT_WR)
    assert stage.ends(far) == "end"
    assert far.received == beat_request(1)
    far.socket.send(beat_response(1))
    far.socket.close()
    assert stage.ends(near) == "end"
    assert near.received == beat_response(1)


def test_a_target_that_is_down_is_a_connection_that_is_reset(stage: Stage) -> None:
    stage.listener.close()
    assert stage.ends(stage.dial()) == "reset"
    assert not stage.proxy.status().connection_count


def test_megabytes_go_through_a_slow_receiver_unharmed(stage: Stage) -> None:
    near, far = stage.pair()
    frames = b"".join(plain_request(number, size=100_000) for number in range(200))
    sent = full_count = 0

    def moved() -> bool:
        nonlocal sent, full_count
        try:
            sent += near.socket.send(memoryview(frames)[sent : sent + (1 << 18)])
        except BlockingIOError:
            full_count += 1
        if full_count > 20:  # Every buffer on the way is full: the receiver wakes up.
            far.look()
        return len(far.received) == len(frames)

    stage.until(moved)
    assert sent > BACKLOG
    assert far.received == frames


@pytest.mark.parametrize("dies", ["close", "kill"])
def test_a_held_request_is_delivered_although_its_sender_died(stage: Stage, dies: str) -> None:
    stage.lay(Hold(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1) + beat_request(2))
    stage.until(lambda: stage.held() == 1)
    near.socket.send(beat_request(3))
    near.kill() if dies == "kill" else near.socket.close()
    stage.settle()
    far.look()
    assert (far.received, far.ending) == (b"", None)
    assert stage.proxy.release("rule").delivered == 1
    assert stage.ends(far) == "end"
    assert far.received == join_request(1) + beat_request(2) + beat_request(3)
    far.socket.send(join_response(1))
    stage.until(lambda: len(stage.notes.rows) == 4)
    # Of one that has closed its end nobody knows whether it still reads.
    fate = "undeliverable" if dies == "kill" else "forwarded"
    assert stage.notes.fates()[-1] == ("AlterPartition", "response", fate)
    far.socket.close()
    stage.until(lambda: not stage.proxy.status().connection_count)


@pytest.mark.parametrize("dies", ["close", "kill"])
def test_a_held_request_whose_target_died_is_undeliverable(stage: Stage, dies: str) -> None:
    stage.lay(Hold(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    far.kill() if dies == "kill" else far.socket.close()
    assert stage.ends(near) == "end"
    near.socket.close()
    stage.until(lambda: not stage.proxy.status().connection_count)
    assert stage.held() == 1
    delivery = stage.proxy.release("rule")
    assert (delivery.delivered, delivery.undeliverable) == (0, 1)
    assert not stage.is_dialled(), "nobody dials again in silence"


def test_the_retry_of_a_held_request_is_held_as_well(stage: Stage) -> None:
    stage.lay(Hold(), JOINS)
    first, far_of_first = stage.pair()
    first.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    first.socket.close()
    second, far_of_second = stage.pair()
    second.socket.send(join_request(2))
    stage.until(lambda: stage.held() == 2)
    assert stage.proxy.release("rule").delivered == 2
    stage.gets(far_of_first, join_request(1))
    stage.gets(far_of_second, join_request(2))


def test_other_connections_live_while_one_is_held(stage: Stage) -> None:
    stage.lay(Hold(), Match(api="AlterPartition", sources=(BROKER,)))
    near, _ = stage.pair()
    near.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    for link in (0, 1):
        near, far = stage.pair(link)
        near.socket.send(beat_request(5))
        stage.gets(far, beat_request(5))
    near.socket.send(join_request(6))
    stage.gets(far, beat_request(5) + join_request(6))


def test_what_a_removed_rule_held_can_be_dropped(stage: Stage) -> None:
    stage.lay(Hold(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    assert stage.proxy.discard("rule") == 1
    assert stage.ends(near) == "reset"
    assert stage.ends(far) == "reset"
    assert far.received == b""
    with pytest.raises(HarnessError, match="no rule rule is active"):
        stage.proxy.release("rule")


@pytest.mark.parametrize("action", [Drop(), Cut(passed_on=False)])
def test_a_dropped_frame_resets_its_connection(stage: Stage, action: Action) -> None:
    stage.lay(action, JOINS)
    near, far = stage.pair()
    near.socket.send(plain_request(1) + join_request(2))
    assert stage.ends(near) == "reset"
    assert stage.ends(far) == "reset"
    assert join_request(2) not in far.received


def test_a_cut_lets_its_frame_arrive_and_no_answer_come_back(stage: Stage) -> None:
    stage.lay(Cut(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    assert stage.ends(near) == "reset"
    assert stage.ends(far) == "end"
    assert far.received == join_request(1)


def test_a_delayed_frame_arrives_later(stage: Stage) -> None:
    stage.lay(Delay(min_ms=30, max_ms=30), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1) + plain_request(2))
    stage.gets(far, join_request(1) + plain_request(2))
    [row] = stage.notes.rows
    assert row["forwarded_ns"] - row["time_ns"] >= 30_000_000


def test_a_duplicate_comes_over_a_connection_of_its_own(stage: Stage) -> None:
    stage.lay(Duplicate(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.gets(far, join_request(1))
    again = stage.accept()
    stage.gets(again, join_request(1))
    again.socket.send(join_response(1))
    assert stage.ends(again) == "end"
    again.socket.close()
    stage.until(lambda: stage.proxy.status().connection_count == {THERE: 1})
    near.look()
    assert near.received == b""


def test_the_next_request_overtakes_on_another_connection(stage: Stage) -> None:
    stage.lay(Reorder(), JOINS)
    first, far_of_first = stage.pair()
    first.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    far_of_first.kill()
    second, far_of_second = stage.pair()
    second.socket.send(join_request(2))
    stage.gets(far_of_second, join_request(2))
    stage.gets(stage.accept(), join_request(1))


def test_an_error_is_answered_in_the_targets_place(stage: Stage) -> None:
    stage.lay(Answer(error="NOT_CONTROLLER"), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.until(lambda: near.look() or len(near.received) > 8)  # type: ignore[func-returns-value]
    assert stage.notes.rows[1]["error"] == "NOT_CONTROLLER"
    near.socket.send(plain_request(2))
    stage.gets(far, plain_request(2))


def test_a_stalled_sender_is_read_no_more_until_the_rule_goes(stage: Stage) -> None:
    stage.lay(Stall(), JOINS)
    near, far = stage.pair()
    near.socket.send(join_request(1))
    stage.gets(far, join_request(1))
    near.socket.send(beat_request(2))
    stage.settle()
    far.look()
    assert far.received == join_request(1)
    stage.proxy.release("rule")
    stage.gets(far, join_request(1) + beat_request(2))


def test_a_held_response_comes_when_it_is_released(stage: Stage) -> None:
    stage.lay(Hold(), Match(direction=Direction.RESPONSE, api="BrokerHeartbeat"))
    near, far = stage.pair()
    near.socket.send(beat_request(1))
    stage.gets(far, beat_request(1))
    far.socket.send(beat_response(1))
    stage.until(lambda: stage.held() == 1)
    far.kill()
    stage.settle()
    near.look()
    assert (near.received, near.ending) == (b"", None)
    stage.proxy.release("rule")
    assert stage.ends(near) == "end"
    assert near.received == beat_response(1)


def test_a_blocked_flow_passes_nothing_and_delivers_all_when_it_heals(stage: Stage) -> None:
    near, far = stage.pair()
    near.socket.send(plain_request(1))
    stage.gets(far, plain_request(1))
    stage.proxy.block([BACK])
    far.socket.send(plain_response(1))
    near.socket.send(plain_request(2))
    stage.gets(far, plain_request(1) + plain_request(2))
    near.look()
    assert near.received == b""
    assert stage.proxy.status().withheld_bytes == {BACK: len(plain_response(1))}
    stage.proxy.unblock([BACK])
    stage.gets(near, plain_response(1))
    assert stage.proxy.status().withheld_bytes == {}


@pytest.mark.parametrize("flow", [THERE, BACK])
def test_a_new_connection_over_a_blocked_flow_is_dialled_when_it_heals(
    stage: Stage, flow: tuple[str, str]
) -> None:
    stage.proxy.block([flow])
    near = stage.dial()
    near.socket.send(beat_request(1))
    stage.settle()
    assert not stage.is_dialled()
    assert stage.proxy.status().withheld_bytes[flow] == (
        len(beat_request(1)) if flow == THERE else 0
    )
    stage.proxy.unblock(None)
    far = stage.accept()
    stage.gets(far, beat_request(1))
    far.socket.send(beat_response(1))
    stage.gets(near, beat_response(1))


def test_a_sender_killed_behind_a_partition_has_its_bytes_delivered(stage: Stage) -> None:
    near, far = stage.pair()
    stage.proxy.block([THERE, BACK])
    near.socket.send(beat_request(1))
    stage.settle()
    near.kill()
    stage.settle()
    far.look()
    assert (far.received, far.ending) == (b"", None)
    stage.proxy.unblock(None)
    assert stage.ends(far) == "end"
    assert far.received == beat_request(1)


@pytest.mark.parametrize("settled", [False, True])
def test_a_target_killed_behind_a_partition_is_seen_dead_when_it_heals(
    stage: Stage, *, settled: bool
) -> None:
    near, far = stage.pair()
    if settled:
        stage.settle()
    stage.proxy.block([THERE, BACK])
    far.kill()
    stage.settle()
    near.look()
    assert near.ending is None
    stage.proxy.unblock([THERE, BACK])
    assert stage.ends(near) == "end"


def test_a_client_that_left_before_the_heal_leaves_nothing(stage: Stage) -> None:
    stage.proxy.block([THERE])
    near = stage.dial()
    stage.settle()
    near.kill()
    stage.until(lambda: not stage.proxy.status().connection_count)
    assert not stage.is_dialled()


def test_one_flow_can_be_unblocked_alone(stage: Stage) -> None:
    stage.proxy.block([THERE, (OTHER, CONTROLLER)])
    near, other = stage.dial(0), stage.dial(1)
    near.socket.send(plain_request(1))
    other.socket.send(plain_request(2))
    stage.proxy.unblock([(OTHER, CONTROLLER)])
    stage.gets(stage.accept(), plain_request(2))
    assert list(stage.proxy.status().withheld_bytes) == [THERE]


def test_connections_can_be_cut_by_who_dialled_whom(stage: Stage) -> None:
    near, far = stage.pair(0)
    other, far_of_other = stage.pair(1)
    assert stage.proxy.cut([THERE]) == 1
    assert stage.ends(near) == stage.ends(far) == "reset"
    other.socket.send(plain_request(1))
    stage.gets(far_of_other, plain_request(1))


def test_nonsense_is_cut_and_noted_and_hurts_nobody_else(stage: Stage) -> None:
    near, far = stage.pair()
    near.socket.send(b"GET / HTTP/1.1\r\n\r\n")
    assert stage.ends(near) == stage.ends(far) == "reset"
    status = stage.proxy.status()
    assert status.broken_count == 1
    assert "broker-1 → controller-1, connection 0, cut: request: a frame of" in status.broken[0]
    near, far = stage.pair()
    near.socket.send(plain_request(1))
    stage.gets(far, plain_request(1))


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.77.1.1", 0)) as taken:
        links = Stage.links_at(taken.getsockname()[1])
        with pytest.raises(HarnessError, match=r"cannot listen on 127\.77\.1\.1:\d+, for the link"):
            Proxy(links, journal=None, clock=Clock.start())  # type: ignore[arg-type]


def test_a_name_is_for_one_rule_at_a_time(stage: Stage) -> None:
    stage.lay(Hold(), JOINS)
    with pytest.raises(HarnessError, match="a rule named rule is active already"):
        stage.lay(Drop(), JOINS)
    stage.proxy.release("rule")
    stage.lay(Drop(), JOINS)
    assert stage.proxy.status().rules["rule"].matched_count == 0


def test_topics_can_be_named_for_frames_that_state_ids(stage: Stage) -> None:
    clause = Clause(field="key", operator=Operator.IS, value="t-0")
    stage.lay(Hold(), Match(api="AlterPartition", where=(clause,)))
    stage.proxy.name_topics({"AAAAAAAAAAAAAAAAAAAABw": "t"})
    near, _ = stage.pair()
    near.socket.send(join_request(1))
    stage.until(lambda: stage.held() == 1)
    assert stage.notes.rows[0]["items"][0]["topic"] == "t"
