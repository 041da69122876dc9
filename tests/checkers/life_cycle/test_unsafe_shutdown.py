"""L6: a broker that is told it may go leads nothing."""

from metadata_logs import FACTS, asked, doubts, proofs, tables
from proving import assert_proof

from fencepost.checkers.life_cycle.unsafe_shutdown import unsafe_shutdowns
from fencepost.checkers.proof import Proof

LOG = """
    0 leader 1000 at 0
    1 register 1 at 100
    2 unfence 1 at 200
    3 topic t at 300
    4 partition t-0 replicas 1,2 isr 1,2 leader 1 at 400
    {}
    9 noop at 9000
"""
TOLD = "at {} broker-1 heartbeat epoch 1 asking leave -> {} told leave at {}"


def unsafe(
    change: str = "", *, answer: str = "ok", at_ms: int = 5000, log: str = LOG
) -> list[Proof]:
    frames = TOLD.format(at_ms, answer, at_ms + 2)
    return proofs(asked(unsafe_shutdowns, tables(log.format(change), frames), FACTS)).get(
        "broker 1", []
    )


def test_a_broker_is_let_go_while_it_leads() -> None:
    (proof,) = unsafe()
    assert_proof(
        proof,
        "that it may go (frame {answer_frame}), while it led {key}",
        target="controller-1",
        broker_id=1,
        answered=5002,
        answer_frame=1,
        key="t-0",
        metadata_offset=4,
        end=8891,
    )
    assert not unsafe("5 change t-0 isr 2 leader 2 at 4900")
    assert not unsafe("5 change t-0 leader -1 at 4900")
    assert not unsafe("5 delete t at 4900")


def test_what_changes_near_the_answer_is_not_told_of() -> None:
    assert not unsafe("5 change t-0 isr 2 leader 2 at 5100")
    assert unsafe("5 change t-0 isr 2 leader 2 at 5200")
    assert not unsafe(at_ms=450)
    assert not unsafe(at_ms=8950)


def test_only_an_answer_that_says_so_counts() -> None:
    assert not unsafe(answer="NOT_CONTROLLER")
    staying = TOLD.format(5000, "ok", 5002).replace(" told leave", "")
    assert not proofs(asked(unsafe_shutdowns, tables(LOG.format(""), staying), FACTS))
    crashed = "at 5000 broker-1 heartbeat epoch 1 asking leave -> nothing"
    assert not proofs(asked(unsafe_shutdowns, tables(LOG.format(""), crashed), FACTS))


def test_a_registration_that_never_served_is_left_out() -> None:
    assert not unsafe(log=LOG.replace("2 unfence 1", "2 noop"))


def test_without_a_log_nothing_is_judged() -> None:
    assert doubts(asked(unsafe_shutdowns, tables(""), FACTS))
