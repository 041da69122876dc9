"""L14: a broker has caught up, asks, and remains fenced."""

import pytest
from metadata_logs import asked, facts, tables, told
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.life_cycle.never_unfenced import never_unfenced
from fencepost.checkers.proof import Proof

S = 1_000_000_000
LOG = """
    0 leader 1000
    10 register 1 at 1000
    {}
    99 noop at 60000
"""
BEAT = "at {} broker-1 heartbeat epoch 10 offset {} -> ok at {}"
CAUGHT_UP = "\n".join(BEAT.format(at, 12, at + 1) for at in range(2000, 40_000, 2000))


def found(
    log: str = "", frames: str = CAUGHT_UP, *events: tuple[str, str, int]
) -> tuple[list[Proof], int]:
    given = tables(LOG.format(log), frames, faults=faults(*events))
    return told(asked(never_unfenced, given, facts(brokers=1, end_ns=50 * S)))


def test_a_broker_that_has_caught_up_remains_fenced() -> None:
    (proof,), cases = found()
    assert_proof(
        proof,
        "is still fenced from {since} until {until}",
        broker_id=1,
        metadata_offset=10,
        applied=12,
        frame=0,
        asked=2000,
        since=2001,
        until=38_000,
        bound=10_000,
    )
    assert cases == 1


def test_a_broker_that_is_unfenced_in_time_holds_the_rule() -> None:
    assert found("11 unfence 1 at 5000") == ([], 1)
    assert found("11 unfence 1 at 20000")[0]


def test_a_broker_that_has_not_caught_up_is_fenced_by_right() -> None:
    assert found(frames=CAUGHT_UP.replace("offset 12", "offset 9")) == ([], 0)


@pytest.mark.parametrize("wish", ["asking fenced", "asking leave"])
def test_a_broker_that_asks_for_something_else_is_fenced_by_right(wish: str) -> None:
    assert found(frames=CAUGHT_UP.replace("offset 12", f"offset 12 {wish}")) == ([], 0)
    later = CAUGHT_UP + "\nat 7000 broker-1 heartbeat epoch 10 offset 12 " + wish + " -> ok at 7001"
    assert found(frames=later) == ([], 1)


def test_a_broker_that_stops_asking_or_is_refused_is_not_waiting() -> None:
    assert found(frames="\n".join(CAUGHT_UP.splitlines()[:4])) == ([], 1)
    assert found(frames=CAUGHT_UP.replace("-> ok", "-> STALE_BROKER_EPOCH")) == ([], 0)


def test_who_cannot_act_unfences_nobody() -> None:
    assert found("", CAUGHT_UP, ("kill", "broker-2", 9000))[0]
    for fault, target in (("partition", "broker-2"), ("pause", "controller-1")):
        broken = [(fault, target, at) for at in (9000, 18_000, 27_000, 36_000)]
        assert found("", CAUGHT_UP, *broken) == ([], 1)
