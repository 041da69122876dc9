"""L5: reads through brokers that may not serve."""

import pyarrow as pa
from metadata_logs import FACTS, asked, describes, doubts, facts, never, proofs, tables
from proving import assert_proof, source_of

from checkers.anomaly import anomalies_of
from checkers.life_cycle.served_while_fenced import served_while_fenced
from checkers.proof import Proof
from history.cluster_schema import DESCRIBES, NODE_SETTINGS

LEASES = facts(leases=True)
SETTINGS = pa.Table.from_pylist(
    [{"node": "controller-1", "name": "broker.session.timeout.ms", "value": "3000"}],
    schema=NODE_SETTINGS,
)
BEAT = "at 1000 broker-1 heartbeat epoch 1 -> ok at 1005\n"
LATER = "at 1500 broker-1 heartbeat epoch 1 -> {}\n"
WOKE = "broker-1 showed t-0 leader 1 isr 1 at 4400..4410\n"
READ = "broker-1 showed t-0 leader 1 isr 1 at {}\n"


def given(frames: str, reads: str | pa.Table) -> dict[str, pa.Table]:
    shown = describes(reads) if isinstance(reads, str) else reads
    return tables("", frames, describes=shown, node_settings=SETTINGS)


def served(frames: str, reads: str | pa.Table) -> list[Proof]:
    return proofs(asked(served_while_fenced, given(frames, reads), LEASES)).get("broker-1", [])


def test_a_broker_answers_after_its_lease() -> None:
    (proof,) = served(BEAT, WOKE + READ.format("5000..5003"))
    assert_proof(
        proof,
        "it had a lease until {over} at most",
        node="broker-1",
        read=1,
        call=5000,
        return_=5003,
        over=4000,
        api="BrokerHeartbeat",
        asked=1000,
        frame=0,
    )
    assert source_of(proof, "asked") == "frame 0"
    assert not served(BEAT, WOKE + READ.format("3990..9000"))


def test_what_was_answered_renews_the_lease_and_nothing_else() -> None:
    reads = WOKE + READ.format("4500..4510")
    assert not served(BEAT + LATER.format("ok at 1510"), reads)
    assert not served(BEAT + LATER.format("ok at 1510 passed 4505"), reads)
    assert not served(BEAT + LATER.format("ok at 1510").replace("heartbeat", "register"), reads)
    assert served(BEAT + LATER.format("nothing"), reads)
    assert served(BEAT + LATER.format("ok at 1510 passed never"), reads)
    assert served(BEAT + LATER.format("ok at 1510 passed 4600"), reads)
    assert served(BEAT + LATER.format("STALE_BROKER_EPOCH at 1510"), reads)


def test_one_read_in_the_step_in_which_it_wakes_up_is_not_accused() -> None:
    assert not served(BEAT, READ.format("5000..5003"))
    assert not served(BEAT, READ.format("5000..5003") + READ.format("5001..5004"))
    assert not served(BEAT, READ.format("4100..4300") + READ.format("5000..5003"))
    assert served(BEAT, READ.format("5000..5003") + READ.format("5004..5006"))


def test_a_broker_answers_though_it_was_told_that_it_is_fenced() -> None:
    fenced = BEAT + LATER.format("ok told fenced at 1510")
    reads = READ.format("1800..1810") + READ.format("1820..1830")
    (proof,) = served(fenced, reads)
    assert_proof(
        proof,
        "that it is fenced (frame {answer_frame})",
        node="broker-1",
        read=1,
        call=1820,
        return_=1830,
        target="controller-1",
        told=1510,
        answer_frame=11,
    )
    assert not served(fenced + LATER.format("ok at 1825").replace("1500", "1700"), reads)
    assert not served(BEAT + LATER.format("ok told fenced at 1510 passed never"), reads)
    older = BEAT.replace("at 1000", "at 1600").replace("1005", "1605") + LATER
    assert not served(older.format("ok told fenced at 1610"), reads)


def test_a_read_without_an_answer_is_none() -> None:
    rows = describes(WOKE + READ.format("5000..5003")).to_pylist()
    failed = pa.Table.from_pylist(
        [{**row, "error": "NETWORK_EXCEPTION"} for row in rows], DESCRIBES
    )
    assert not served(BEAT, failed)


def test_brokers_that_keep_no_lease_may_serve() -> None:
    judged = list(
        asked(
            served_while_fenced, given(BEAT, WOKE + READ.format("5000..5003")), facts(leases=False)
        )
    )
    assert not never(judged)
    assert [one.allowed for _, found in judged for one in anomalies_of(found.table)] == [True]


def test_without_heartbeats_or_settings_nothing_is_judged() -> None:
    assert not list(asked(served_while_fenced, given("", WOKE), LEASES))
    silent = given(BEAT, WOKE) | {"node_settings": NODE_SETTINGS.empty_table()}
    assert "settings" in doubts(asked(served_while_fenced, silent, FACTS))["metadata"]
