"""A broker carries out now a decision of long ago."""

from metadata_logs import ON_ZOOKEEPER, asked, case_count, metadata_log, proofs, sentence, wire

from checkers.control_plane.stale_request_accepted import stale_requests_accepted

LOG = "3 register 2 unfenced at 1000"
AGAIN = LOG + "\n9 register 2 unfenced at 5000"


def found(log: str, *lines: str) -> tuple[list[str], int]:
    given = {"metadata_log": metadata_log(zookeeper_1=log), "wire": wire("\n".join(lines))}
    judged = list(asked(stale_requests_accepted, given, ON_ZOOKEEPER))
    told = [one.sentence for of_key in proofs(judged).values() for one in of_key]
    return told, case_count(judged)


NEW = "at 7000 broker-3 to broker-2 on 2 tells epoch 2 for -1 -> ok at 7010"
OLD = "at 6000 passed 7{} broker-1 to broker-2 on 1 tells epoch 1 for -1 -> {} at 7300"


def test_a_request_of_a_controller_before_the_last_one() -> None:
    (told,), count = found(LOG, NEW, OLD.format("200", "ok"))
    assert (
        told
        == sentence(
            """broker-2 answered the LeaderAndIsr of broker-1, passed on at 7.200 s (frame 10), with
        NONE: it has controller epoch 1, and one with controller epoch 2 had been answered at
        7.010 s"""
        )
        + " (frame 0)"
    )
    assert count == 1
    assert found(LOG, NEW, OLD.format("200", "STALE_CONTROLLER_EPOCH")) == ([], 1)
    # It may have come before the other one, or to a process that has not heard of it.
    assert found(LOG, NEW, OLD.format("005", "ok")) == ([], 0)
    restarted = LOG + "\n9 register 2 unfenced at 7100"
    assert found(restarted, NEW, OLD.format("200", "ok")) == ([], 0)


def test_a_request_for_an_incarnation_before_the_present_one() -> None:
    request = "at 4000 passed {} broker-1 to broker-2 tells epoch 1 for {} -> {} at 9000"
    (told,), count = found(AGAIN, request.format(8000, 3, "ok"))
    assert told.endswith(
        "it is for broker epoch 3, and the broker had registered with 9 at metadata offset 9"
    )
    assert count == 1
    assert found(AGAIN, request.format(8000, 3, "STALE_BROKER_EPOCH")) == ([], 1)
    assert found(AGAIN, request.format(8000, 9, "ok")) == ([], 1)
    # The broker may not know its new epoch yet.
    assert found(AGAIN, request.format(6000, 3, "ok")) == ([], 1)
    # Requests of before KIP-380 name none.
    assert found(AGAIN, request.format(8000, -1, "ok")) == ([], 0)
    assert found(AGAIN, "at 8000 broker-1 to broker-2 tells epoch 1 for 3 -> nothing") == ([], 0)
