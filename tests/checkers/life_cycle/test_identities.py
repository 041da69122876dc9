"""L1, L3 and L7: who may run, under which id."""

from itertools import groupby

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from metadata_logs import FACTS, asked, doubts, proofs, tables
from proving import assert_proof, source_of

from fencepost.checkers.known_findings import KNOWN_FINDINGS
from fencepost.checkers.life_cycle.duplicate_id import duplicate_ids
from fencepost.checkers.life_cycle.incarnation_went_back import incarnations_that_went_back
from fencepost.checkers.life_cycle.refused_but_running import refused_but_running
from fencepost.checkers.proof import Proof
from fencepost.history.cluster_schema import NODE_SETTINGS

REFUSED = "at 1000 broker-1 register incarnation a -> DUPLICATE_BROKER_REGISTRATION at 1005\n"
BEAT = "at 2000 broker-1 heartbeat epoch -1 -> ok at 2001"
LOG = """
    0 leader 1000 at 0
    1 register 1 incarnation a at 100
    2 unfence 1 at 200
    3 register 1 incarnation b at {}
"""
SETTINGS = pa.Table.from_pylist(
    [{"node": "controller-1", "name": "broker.session.timeout.ms", "value": "3000"}],
    schema=NODE_SETTINGS,
)


def refused(frames: str) -> list[Proof]:
    return proofs(asked(refused_but_running, tables("0 noop", frames), FACTS)).get("broker-1", [])


def duplicates(frames: str, *, log: str = LOG, at_ms: int = 7000) -> list[Proof]:
    given_tables = tables(log.format(at_ms), frames, node_settings=SETTINGS)
    return proofs(asked(duplicate_ids, given_tables, FACTS)).get("broker 1", [])


def went_back(log: str, frames: str = "") -> list[Proof]:
    given_tables = tables(log, frames)
    return proofs(asked(incarnations_that_went_back, given_tables, FACTS)).get("broker 1", [])


def test_a_refused_broker_goes_on() -> None:
    (proof,) = refused(REFUSED + BEAT)
    assert_proof(
        proof,
        "{target} refused to register incarnation {incarnation_id} of {source} with {error}",
        target="controller-1",
        incarnation_id="a",
        source="broker-1",
        error="DUPLICATE_BROKER_REGISTRATION",
        returned=1005,
        frame=0,
        api="BrokerHeartbeat",
        asked=2000,
        work_frame=10,
    )
    assert source_of(proof, "api") == "frame 10"
    assert refused(REFUSED + "at 2000 broker-1 alter t-0 expecting 5 isr 1 -> ok 6 at 2001")
    assert not refused(REFUSED)


def test_what_a_refused_broker_sends_of_one_kind_is_one_finding() -> None:
    def tried(at_ms: int) -> str:
        refusal = REFUSED.replace("1000", str(at_ms)).replace("1005", str(at_ms + 5))
        alter = "broker-1 alter t-0 expecting 5 isr 1 under -1 -> STALE_BROKER_EPOCH at"
        return (
            refusal
            + f"at {at_ms + 10} {alter} {at_ms + 15}\nat {at_ms + 20} {alter} {at_ms + 25}\n"
        )

    (proof,) = refused(tried(1000) + tried(2000) + tried(3000))
    assert_proof(
        proof,
        "{further_count} more of its kind followed",
        api="AlterPartition",
        broker_epoch=-1,
        answer="STALE_BROKER_EPOCH",
        asked=1010,
        further_count=5,
        last_asked=3020,
        last_frame=80,
    )
    accepted = tried(2000).replace("STALE_BROKER_EPOCH at 2015", "ok 6 at 2015")
    answers = [one.fact("answer") for one in refused(tried(1000) + accepted)]
    assert answers == ["STALE_BROKER_EPOCH", "NONE"]
    beat = "at 1030 broker-1 heartbeat epoch -1 -> STALE_BROKER_EPOCH at 1031"
    assert [one.fact("api") for one in refused(tried(1000) + beat)] == [
        "AlterPartition",
        "BrokerHeartbeat",
    ]


def test_a_refused_broker_may_try_again() -> None:
    again = "at 1500 broker-1 register incarnation a -> {} at 1505\n"
    assert not refused(REFUSED + again.format("ok 7") + BEAT)
    assert refused(REFUSED + again.format("DUPLICATE_BROKER_REGISTRATION") + BEAT)


def test_whoever_may_be_registered_is_not_accused() -> None:
    unanswered = "at 500 broker-1 register incarnation a -> nothing\n"
    assert not refused(unanswered + REFUSED + BEAT)  # it may have been accepted
    assert refused(unanswered.replace("500", "500 held") + REFUSED + BEAT)
    accepted = "at 500 broker-1 register incarnation a -> ok 3 at 505\n"
    assert not refused(accepted + REFUSED + BEAT)
    never_heard = REFUSED.replace("1005", "1005 passed never")
    assert not refused(never_heard + BEAT)
    assert not refused(REFUSED.replace("at 1005", "at 1005 by the proxy") + BEAT)


def test_what_another_process_of_the_node_or_another_node_sent_is_not_its() -> None:
    old = REFUSED.replace("broker-1", "broker-1 on 7")
    assert not refused(old + BEAT.replace("broker-1", "broker-1 on 6"))
    assert refused(old + BEAT.replace("broker-1", "broker-1 on 8"))
    assert not refused(REFUSED + BEAT.replace("broker-1", "broker-2"))


def test_an_id_is_given_away_while_its_holder_lives() -> None:
    beat = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    (proof,) = duplicates(beat)
    assert_proof(
        proof,
        "while the session of incarnation {before_incarnation_id}",
        incarnation_id="b",
        broker_id=1,
        metadata_offset=3,
        version_broker_epoch=3,
        before_incarnation_id="a",
        broker_epoch=1,
        target="controller-1",
        reached=5000,
        frame=0,
    )
    assert source_of(proof, "version_broker_epoch") == "metadata offset 3"
    assert not duplicates(beat, at_ms=8000)
    assert not duplicates(beat.replace("ok at 5002", "nothing"))
    assert not duplicates(beat.replace("epoch 1", "epoch 1 asking leave"))
    leaves = "\nat 5500 passed {} broker-1 heartbeat epoch 1 asking leave -> ok at {}"
    assert not duplicates(beat + leaves.format(6500, 6502))
    assert duplicates(beat + leaves.format(8000, 8002))  # it had not reached the controller yet


def test_the_decision_that_gives_it_away_may_fence_its_holder_first() -> None:
    beat = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    log = LOG.replace("    3 reg", "    3 fence 1 at {}\n    4 reg")
    assert len(duplicates(beat, log=log.format(7000, "{}"))) == 1
    assert not duplicates(beat, log=log.format(6999, "{}"))


def test_an_id_that_is_free_is_given_away() -> None:
    beat = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
    assert not duplicates(beat, log=LOG.replace("    3 reg", "    3 fence 1 at 5500\n    4 reg"))
    assert not duplicates(beat, log=LOG.replace("    3 reg", "    3 stopping 1 at 600\n    4 reg"))
    assert not duplicates(beat, log=LOG.replace("incarnation b", "incarnation a"))
    another = LOG.replace("    3 reg", "    3 leader 1000 epoch 2 at 5500\n    4 reg")
    assert not duplicates(beat, log=another)
    assert duplicates(beat.replace("5000", "5000 passed 5700").replace("5002", "5702"), log=another)


def test_an_incarnation_comes_back_after_it_was_replaced() -> None:
    log = "1 register 1 incarnation a\n2 register 1 incarnation {}\n3 register 1 incarnation a"
    (proof,) = went_back(log.format("b"))
    assert_proof(
        proof,
        "had taken its place",
        incarnation_id="a",
        broker_id=1,
        version_metadata_offset=3,
        by_incarnation_id="b",
        metadata_offset=2,
    )
    assert not went_back(log.format("a"))
    assert not went_back(log.format("b").replace("3 register 1", "3 register 2"))


def test_a_registration_that_outlived_its_sender_takes_the_place_of_a_later_one() -> None:
    log = "8 register 1 incarnation b\n9 register 1 incarnation {}"
    late = "at {} passed 3000 broker-1 on 1 register incarnation a -> {} at 3005\n"
    now = "at 1000 broker-1 on 2 register incarnation b -> ok 8 at 1005"
    (proof,) = went_back(log.format("a"), late.format(999, "ok 9") + now)
    assert_proof(
        proof,
        "which had registered at metadata offset",
        incarnation_id="a",
        broker_id=1,
        version_metadata_offset=9,
        by_incarnation_id="b",
        metadata_offset=8,
        asked=999,
        frame=0,
        before_asked=1000,
        before_frame=10,
    )
    assert source_of(proof, "asked") == "frame 0"
    assert not went_back(log.format("a"), late.format(1001, "ok 9") + now)
    assert not went_back(log.format("b"), late.format(999, "ok 9") + now)
    refused_then = late.format(999, "DUPLICATE_BROKER_REGISTRATION")
    assert not went_back(log.format("a"), refused_then + now)
    # What was never answered may not be what was accepted.
    lost = "at 999 passed 3000 broker-1 on 1 register incarnation a -> nothing\n"
    assert not went_back(log.format("a"), lost + now)


def test_what_made_a_registration_late_is_told() -> None:
    log = "8 register 1 incarnation b\n9 register 1 incarnation a"
    tape = (
        "at 999 passed {} broker-1 on 1 register incarnation a -> ok 9 at 3005\n"
        "at 1000 broker-1 on 2 register incarnation b -> ok 8 at 1005"
    )
    known = KNOWN_FINDINGS["late-registration"].facts
    for passed, was in ((3000, known["was"]), (999, "had reached a controller")):
        (proof,) = went_back(log, tape.format(passed))
        assert_proof(proof, "the earlier one {was}", was=was)


def test_a_registration_is_by_the_request_that_was_answered_first() -> None:
    log = "8 register 1 incarnation a\n9 register 1 incarnation b"
    other = "at 1500 broker-1 on 1 register incarnation a -> ok 8 at 1505\n"
    held = "at 1000 passed 30000 broker-1 on 2 register incarnation b -> ok 9 at 30005\n"
    again = "at 20000 broker-1 on 2 register incarnation b -> ok 9 at 20005\n"
    assert went_back(log, other + held)
    assert not went_back(log, other + held + again)


# The storm of 20 minutes on 4.3.1 that met it by chance: the dead incarnation's registration is
# taken among those of the living one, which goes on by the answer to its first.
MET = """
    8 register 1 incarnation living
    9 register 1 incarnation dead
    10 register 1 incarnation living
    11 register 1 incarnation living epoch-is 10
    12 register 1 incarnation living epoch-is 10
"""
MET_TAPE = """
    at 1000 passed 21000 broker-1 on 1 register incarnation dead -> {} at 21005 passed never
    at 2000 passed 20900 broker-1 on 2 register incarnation living -> ok 8 at 20905
    at 4000 passed 22000 broker-1 on 3 register incarnation living -> ok 10 at 22005 passed never
    at 6000 passed 23000 broker-1 on 4 register incarnation living -> ok 10 at 23005 passed never
    at 20910 broker-1 on 2 heartbeat epoch 8 -> ok at 20915
    at 21500 broker-1 on 2 heartbeat epoch 8 -> STALE_BROKER_EPOCH at 21505
    at 24000 broker-1 on 2 heartbeat epoch 8 -> STALE_BROKER_EPOCH at 24005
    at 26000 broker-1 on 2 heartbeat epoch 8 -> STALE_BROKER_EPOCH at 26005
"""


def test_a_late_registration_among_those_of_the_living_one_is_one_finding() -> None:
    (proof,) = went_back(MET, MET_TAPE.format("ok 9"))
    assert_proof(
        proof,
        "which had registered at metadata offset",
        incarnation_id="dead",
        version_metadata_offset=9,
        by_incarnation_id="living",
        metadata_offset=8,
    )


def test_the_heartbeats_of_the_one_that_it_put_out_belong_to_the_finding() -> None:
    (proof,) = went_back(MET, MET_TAPE.format("ok 9"))
    assert_proof(
        proof,
        "from then on broker {out_broker_id} was out: {refused_count} of its heartbeats",
        out_broker_id=1,
        refused_count=3,
        out_since=21500,
        first_refused_frame=50,
        last_refused=26000,
        last_refused_frame=70,
    )
    assert "heard again" not in proof.rule
    back = "at 30000 broker-1 on 5 heartbeat epoch 40 -> ok at 30005"
    (proof,) = went_back(MET, MET_TAPE.format("ok 9") + back)
    assert_proof(proof, "it was heard again at {out_until}", out_until=30000)
    # Another broker's refusals are not its.
    other = MET_TAPE.replace("broker-1 on 2 heartbeat", "broker-2 on 9 heartbeat")
    (proof,) = went_back(MET, other.format("ok 9"))
    assert "was out" not in proof.rule


def test_of_an_id_that_went_to_and_fro_the_one_whose_requests_are_older_is_named() -> None:
    unanswered = MET_TAPE.replace("-> {} at 21005 passed never", "-> nothing")
    (proof,) = went_back(MET, unanswered)
    assert (proof.fact("incarnation_id"), proof.fact("by_incarnation_id")) == ("dead", "living")
    # It had a request on its way when the living one asked first: who is late, the log alone says.
    again = "at 2500 broker-1 on 1 register incarnation dead -> nothing"
    (proof,) = went_back(MET, unanswered + again)
    assert (proof.fact("incarnation_id"), proof.fact("by_incarnation_id")) == ("living", "dead")


def test_a_second_late_registration_is_a_second_finding() -> None:
    log = MET + "13 register 1 incarnation dead\n14 register 1 incarnation later"
    assert [proof.fact("incarnation_id") for proof in went_back(log, MET_TAPE.format("ok 9"))] == [
        "dead",
        "dead",
    ]
    # The one that takes over rightfully takes the place of the one that had it rightfully.
    back = log + "\n15 register 1 incarnation living"
    found = went_back(back, MET_TAPE.format("ok 9"))
    assert [proof.fact("incarnation_id") for proof in found] == ["dead", "dead", "living"]


@given(st.lists(st.sampled_from("abcd"), max_size=8))
def test_of_each_stretch_that_comes_from_the_past_there_is_one_finding(names: list[str]) -> None:
    log = "\n".join(f"{n} register 1 incarnation {name}" for n, name in enumerate(names, start=1))
    assert len(went_back(log or "1 noop")) == _returns([name for name, _ in groupby(names)])


def _returns(stretches: list[str]) -> int:
    """Count the stretches that come again after another, which holds the id all the same."""
    gone: set[str] = set()
    count, holder = 0, None
    for name in stretches:
        if name in gone:
            count += 1  # the id remains the holder's
        elif name != holder:
            gone |= {holder} - {None}
            holder = name
    return count


def test_without_tables_no_identity_is_judged() -> None:
    assert doubts(asked(incarnations_that_went_back, tables(""), FACTS))
    assert doubts(asked(duplicate_ids, tables("", node_settings=SETTINGS), FACTS))
    empty = NODE_SETTINGS.empty_table()
    assert (
        "settings"
        in doubts(asked(duplicate_ids, tables("0 noop", node_settings=empty), FACTS))["metadata"]
    )
