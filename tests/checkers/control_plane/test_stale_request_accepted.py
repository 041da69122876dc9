"""A broker carries out now a decision of long ago."""

from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import ON_ZOOKEEPER, asked, metadata_log, told, wire
from proving import assert_proof
from replica_disks import faults

from fencepost.checkers.control_plane.stale_request_accepted import (
    LEARNT_NS,
    Learnt,
    stale_requests_accepted,
)
from fencepost.checkers.metadata.rpcs import rpcs
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.standstills import Standstills

S = 1_000_000_000

LOG = "3 register 2 unfenced at 1000"
AGAIN = LOG + "\n9 register 2 unfenced at 5000"


def found(log: str, *lines: str) -> tuple[list[Proof], int]:
    given = {"metadata_log": metadata_log(zookeeper_1=log), "wire": wire("\n".join(lines))}
    return told(asked(stale_requests_accepted, given, ON_ZOOKEEPER))


NEW = "at 7000 broker-3 to broker-2 on 2 tells epoch 2 for -1 -> ok at 7010"
OLD = "at 6000 passed 7{} broker-1 to broker-2 on 1 tells epoch 1 for -1 -> {} at 7300"


def test_a_request_of_a_controller_before_the_last_one() -> None:
    (proof,), count = found(LOG, NEW, OLD.format("200", "ok"))
    assert_proof(
        proof,
        "it has controller epoch {epoch}",
        target="broker-2",
        api="LeaderAndIsr",
        source="broker-1",
        reached=7200,
        frame=10,
        error="NONE",
        epoch=1,
        newer=2,
        answered=7010,
        before=0,
    )
    assert count == 1
    assert found(LOG, NEW, OLD.format("200", "STALE_CONTROLLER_EPOCH")) == ([], 1)
    # It may have come before the other one, or to a process that has not heard of it.
    assert found(LOG, NEW, OLD.format("005", "ok")) == ([], 0)
    restarted = LOG + "\n9 register 2 unfenced at 7100"
    assert found(restarted, NEW, OLD.format("200", "ok")) == ([], 0)


def test_a_request_of_a_controller_before_the_broker_that_is_it_itself() -> None:
    """What it sends to its own broker crosses no link."""
    own = "at {} broker-2 to broker-3 on 2 tells epoch 2 for -1 -> ok at 5010"
    (proof,), count = found(LOG, own.format(5000), OLD.format("200", "ok"))
    assert_proof(
        proof, "itself at {sent}", target="broker-2", epoch=1, newer=2, sent=5000, before=0
    )
    assert count == 1
    assert found(LOG, own.format(5000), OLD.format("200", "STALE_CONTROLLER_EPOCH")) == ([], 1)
    # It may not have told itself yet, or have restarted since.
    assert found(LOG, own.format(5200), OLD.format("200", "ok")) == ([], 0)
    restarted = LOG + "\n9 register 2 unfenced at 6500"
    assert found(restarted, own.format(5000), OLD.format("200", "ok")) == ([], 0)
    # And one that it sent as an earlier controller than the old one says nothing.
    earlier = own.replace("epoch 2", "epoch 0").format(4000)
    assert found(LOG, earlier, OLD.format("200", "ok")) == ([], 0)


def test_a_request_that_is_not_answered_yet_hides_none_that_is() -> None:
    slow = "at 7100 broker-3 to broker-2 on 2 updates epoch {} for -1 -> ok at 9000"
    for epoch in (2, 3):
        (proof,), _ = found(LOG, NEW, slow.format(epoch), OLD.format("200", "ok"))
        assert_proof(proof, "it has controller epoch {epoch}", epoch=1, newer=2, answered=7010)
    assert found(LOG, slow.format(2), OLD.format("200", "ok")) == ([], 0)


def test_a_request_for_an_incarnation_before_the_present_one() -> None:
    request = "at 4000 passed {} broker-1 to broker-2 tells epoch 1 for {} -> {} at 9000"
    (proof,), count = found(AGAIN, request.format(8000, 3, "ok"))
    assert_proof(
        proof,
        "it is for broker epoch {epoch}",
        epoch=3,
        registered=9,
        metadata_offset=9,
    )
    assert count == 1
    assert found(AGAIN, request.format(8000, 3, "STALE_BROKER_EPOCH")) == ([], 1)
    assert found(AGAIN, request.format(8000, 9, "ok")) == ([], 1)
    # The broker may not know its new epoch yet.
    assert found(AGAIN, request.format(6000, 3, "ok")) == ([], 1)
    given = {
        "metadata_log": metadata_log(zookeeper_1=AGAIN),
        "wire": wire(request.format(8000, 3, "ok")),
        "faults": faults(("pause", "broker-2", 5500), healed=False),
    }
    assert told(asked(stale_requests_accepted, given, ON_ZOOKEEPER)) == ([], 1)
    # Requests of before KIP-380 name none.
    assert found(AGAIN, request.format(8000, -1, "ok")) == ([], 0)
    assert found(AGAIN, "at 8000 broker-1 to broker-2 tells epoch 1 for 3 -> nothing") == ([], 0)


TIMES = st.lists(st.integers(0, 12), max_size=6)
PAUSES = st.lists(st.integers(0, 12), max_size=4)


@given(registered=TIMES, pauses=PAUSES, reached_s=st.integers(0, 14))
def test_what_a_broker_knows_is_its_last_registration_that_it_had_time_to_learn_of(
    registered: list[int], pauses: list[int], reached_s: int
) -> None:
    """Clocks of several controllers may differ: times need not ascend with offsets."""
    lines = (f"{n} register 2 unfenced at {s * 1000}" for n, s in enumerate(registered))
    log = metadata_log(zookeeper_1="\n".join(lines))
    seen = MetadataView(run=ON_ZOOKEEPER, metadata_log=log)
    mine = seen.brokers[2].registrations() if registered else ()
    still = Standstills.of(faults(*(("pause", "broker-2", s * 1000) for s in pauses)))
    line = f"at {reached_s * 1000} broker-1 to broker-2 updates epoch 1 for 3 -> ok at 99000"
    (rpc,) = rpcs(wire(line), "UpdateMetadata")
    known = [
        one
        for one in mine
        if still.acted_ns(
            seen.facts.latest_ns(one.timestamp_ms),
            reached_s * S,
            node="broker-2",
            hears_from=seen.facts.controllers,
        )
        > LEARNT_NS
    ]
    assert Learnt(mine, seen.facts, still).known(rpc) == (known[-1] if known else None)
