"""L5: reads through brokers that may not serve."""

import pyarrow as pa
import pytest
from metadata_logs import (
    FACTS,
    asked,
    case_count,
    describes,
    doubts,
    facts,
    metadata_log,
    never,
    proofs,
    tables,
    wire,
)
from proving import assert_proof, source_of

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.life_cycle.served_while_fenced import served_while_fenced
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import NODE_SETTINGS, WIRE
from fencepost.history.request_schema import DESCRIBES

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


DATA = "at {} clients to broker-1 on 7 {} t-0 -> {}\n"


@pytest.mark.parametrize("verb", ["produces", "consumes"])
def test_a_broker_takes_data_or_gives_it_after_its_lease(verb: str) -> None:
    woke = DATA.format(4400, verb, "ok at 4410")
    late = DATA.format(5000, verb, "ok at 5003")
    (proof,) = served(BEAT + woke + late, "")
    assert_proof(
        proof,
        "answered a client's request of data (frame {data_frame}), called at {call}",
        data_frame=20,
        call=5000,
        return_=5003,
        over=4000,
        frame=0,
    )
    assert source_of(proof, "call") == "frame 20"
    # The nearest that it may do: it was called before the lease ended, or is the first after it.
    assert not served(BEAT + DATA.format(3990, verb, "ok at 9000") + late, "")
    assert not served(BEAT + late, "")
    # Of reads and requests of data, either shows that it was awake.
    assert served(BEAT + late, WOKE)
    assert served(BEAT + woke, READ.format("5000..5003"))


def test_a_request_of_data_that_was_refused_lost_or_never_answered_was_not_served() -> None:
    for answer in (
        "NOT_LEADER_OR_FOLLOWER at 5003",
        "nothing",
        "ok at 5003 by the proxy",
    ):
        assert not served(BEAT + DATA.format(5000, "produces", answer), WOKE), answer
    other = DATA.format(5000, "produces", "nothing") + DATA.format(5000, "consumes", "ok at 5003")
    assert len(served(BEAT + other.replace("clients", "broker-2"), WOKE)) == 0


def test_one_partition_of_several_that_is_served_is_enough() -> None:
    rows = wire(BEAT + DATA.format(5000, "produces", "ok at 5003")).to_pylist()
    refused = {**rows[-1], "item": 1, "partition": 1, "error": "NOT_LEADER_OR_FOLLOWER"}
    tape = pa.Table.from_pylist([*rows[:-1], {**refused, "item": 0}, {**rows[-1], "item": 1}], WIRE)
    given_tape = given("", WOKE) | {"wire": tape}
    assert proofs(asked(served_while_fenced, given_tape, LEASES))["broker-1"]
    tape = pa.Table.from_pylist([*rows[:-1], refused], WIRE)
    given_tape = given("", WOKE) | {"wire": tape}
    assert not proofs(asked(served_while_fenced, given_tape, LEASES)).get("broker-1")


def test_a_tape_without_requests_of_data_leaves_them_unjudged() -> None:
    reads = WOKE + READ.format("5000..5003")
    without = case_count(asked(served_while_fenced, given(BEAT, reads), LEASES))
    data = DATA.format(2000, "produces", "ok at 2003")
    assert case_count(asked(served_while_fenced, given(BEAT + data, reads), LEASES)) == without + 1


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


TOLD = pa.Table.from_pylist(
    [{"node": "broker-1", "name": "broker.heartbeat.timeout.ms", "value": "3000"}],
    schema=NODE_SETTINGS,
)
NODES = {"zookeeper-1": 2001, "broker-1": 1, "broker-2": 2, "broker-3": 3}
BEATS = "at 1000 broker-1 to broker-2 beats epoch 1 -> ok at 1005\n"
LATE = WOKE + READ.format("5000..5003")


def on_zookeeper(log: str, frames: str = BEATS, reads: str = LATE) -> list[Proof]:
    given = tables(
        metadata_log(zookeeper_1=log), frames, describes=describes(reads), node_settings=TOLD
    )
    found = asked(served_while_fenced, given, Facts(node_ids=NODES, leases=True))
    return proofs(found).get("broker-1", [])


def test_on_zookeeper_the_broker_side_time_out_is_the_lease() -> None:
    (proof,) = on_zookeeper("1 leader 2 at 100")
    assert_proof(proof, "{api} of {asked}", api="MetadataHeartbeat", asked=1000, frame=0)
    again = "at 3000 broker-1 to broker-2 beats epoch 1 -> {}"
    assert not on_zookeeper("1 leader 2 at 100", BEATS + again.format("ok at 3005"))
    assert on_zookeeper("1 leader 2 at 100", BEATS + again.format("nothing"))


def test_what_a_controller_says_to_itself_may_be_on_no_link() -> None:
    elected = "1 leader 2 at 100\n3 leader 1 at 2000"
    assert not on_zookeeper(elected)
    # Deposed, it still may not know; once it asked another one, it does.
    deposed = elected + "\n5 leader 3 at 3000"
    assert not on_zookeeper(deposed)
    other = "at 3500 broker-1 to broker-3 beats epoch 1 -> ok at 3505"
    much_later = WOKE.replace("44", "74") + READ.format("8000..8003")
    assert on_zookeeper(deposed, BEATS + other, much_later)
    # Where it is on the tape, it counts.
    own = "at 2500 broker-1 to broker-1 beats epoch 1 -> ok at 2505"
    assert not on_zookeeper(elected, BEATS + own)
    assert on_zookeeper(elected, BEATS + own, much_later)


def test_a_broker_that_was_legacy_is_not_judged() -> None:
    assert not on_zookeeper("1 leader 2 at 100\n3 runs-on 1 h1 version 4 at 2000")
    assert on_zookeeper("1 leader 2 at 100\n3 runs-on 1 h1 version 5 at 2000")
