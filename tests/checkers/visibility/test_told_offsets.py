"""V4 and V5: what brokers are told that all have acknowledged, and what they offer by it."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from metadata_logs import FACTS, asked, doubts, facts, metadata_log, proofs, tables
from proving import assert_proof, only, source_of

from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.early_level import early_offers
from fencepost.checkers.visibility.false_lowest import false_lowest_offsets

LOG = """
    0 leader 1000 at 0
    1 register 1 at 100
    2 register 2 at 100
    3 unfence 1 at 200
    4 unfence 2 at 200
    40 feature metadata.version 14 at 3000
    90 noop at 20000
"""
BEATS = """
    at 1000 broker-1 heartbeat epoch 1 offset 10 -> ok lowest 4 at 1001
    at 1500 broker-2 heartbeat epoch 2 offset 9 -> ok lowest 9 at 1501
"""
ONE = "at 2000 broker-1 heartbeat epoch 1 offset 10 -> ok lowest {} at 2002\n"


def told(frames: str, *, log: str = LOG, controllers: int = 1) -> dict[str, list[Proof]]:
    logs = metadata_log(**{f"controller_{n}": log for n in range(1, controllers + 1)})
    return proofs(asked(false_lowest_offsets, tables(logs, frames), facts(controllers)))


def offered(frames: str, *, log: str = LOG) -> dict[str, list[Proof]]:
    return proofs(asked(early_offers, tables(log, frames), FACTS))


def test_what_an_unfenced_broker_lacks_is_told_as_known_to_all() -> None:
    proof = only(told(BEATS + ONE.format(10)), "broker-1")
    assert_proof(
        proof,
        "unfenced, had acknowledged no more than {acknowledged}",
        target="controller-1",
        source="broker-1",
        answered=2002,
        lowest=10,
        answer_frame=21,
        broker_id=2,
        broker_epoch=2,
        acknowledged=9,
    )
    assert source_of(proof, "lowest") == "frame 21"
    assert not told(BEATS + ONE.format(9))


def test_an_acknowledgement_under_way_counts() -> None:
    unanswered = "at 2001 broker-2 heartbeat epoch 2 offset 10 -> nothing\n"
    assert not told(BEATS + ONE.format(10) + unanswered)
    assert told(BEATS + ONE.format(10) + unanswered.replace("2001", "2001 held"))
    assert told(BEATS + ONE.format(10) + unanswered.replace("2001", "2003"))
    assert told(BEATS + ONE.format(10) + unanswered.replace("epoch 2", "epoch 1"))


@pytest.mark.parametrize("change", ["fence 2", "unregister 2", "register 2"])
def test_who_may_have_been_fenced_by_then_need_not_have_acknowledged(change: str) -> None:
    for at_ms in (1700, 2000, 2090):
        log = LOG.replace("    40 ", f"    30 {change} at {at_ms}\n    40 ")
        assert not told(BEATS + ONE.format(10), log=log)
    log = LOG.replace("    40 ", f"    30 {change} at 2500\n    40 ")
    assert told(BEATS + ONE.format(10), log=log)


def test_a_controller_is_held_only_against_what_it_knew() -> None:
    log = LOG.replace("4 unfence 2 at 200", "4 unfence 2 at 1400")
    unknown = BEATS.replace("ok lowest 9", "ok told fenced")
    assert not told(unknown + ONE.format(10), log=log)
    assert told(BEATS + ONE.format(10), log=log)
    later = log.replace("    40 ", "    30 leader 1000 epoch 2 at 1600\n    40 ")
    assert told(unknown + ONE.format(10), log=later)


def test_the_log_tells_of_no_time_behind_its_end() -> None:
    short = LOG.replace("at 20000", "at 2000").replace("14 at 3000", "14 at 2000")
    assert not told(BEATS + ONE.format(10), log=short)
    assert doubts(asked(false_lowest_offsets, tables("", BEATS), FACTS))
    assert not doubts(asked(false_lowest_offsets, tables(""), FACTS))
    untold = BEATS.replace("lowest 4 ", "").replace("lowest 9 ", "")
    assert not doubts(asked(false_lowest_offsets, tables("", untold), FACTS))


def test_what_is_told_goes_back() -> None:
    acknowledged = BEATS + "at 1600 broker-2 heartbeat epoch 2 offset 10 -> ok lowest 10 at 1601\n"
    assert_proof(
        only(told(acknowledged + ONE.format(9)), "broker-1"),
        "{rpc_target}, in the same term or a later one, told {rpc_source}",
        target="controller-1",
        source="broker-2",
        answered=1601,
        high=10,
        answer_frame=21,
        rpc_target="controller-1",
        rpc_source="broker-1",
        rpc_answered=2002,
        low=9,
        rpc_answer_frame=31,
    )
    assert not told(acknowledged + ONE.format(10))
    assert not told(acknowledged.replace("at 1601", "at 2001") + ONE.format(9))
    unanswered = acknowledged.replace("ok lowest 10 at 1601", "nothing")
    assert not told(unanswered + ONE.format(9))


def test_both_copies_of_a_duplicated_heartbeat_are_judged_by_their_one_answer() -> None:
    last = "at 3000 broker-1 heartbeat epoch 1 offset 10 -> ok lowest 8 at 3002\n"
    given = tables(metadata_log(controller_1=LOG), BEATS + ONE.format(9) + last)
    wire = given["wire"]
    copies = wire.filter(pc.equal(wire["direction"], "request"))
    place = wire.schema.get_field_index("frame")
    copies = copies.set_column(place, wire.schema.field(place), pc.add(copies["frame"], 5))
    given = {**given, "wire": pa.concat_tables([wire, copies])}
    assert len(proofs(asked(false_lowest_offsets, given, facts(1)))["broker-1"]) == 2


def test_a_deposed_controller_may_tell_what_it_knew() -> None:
    log = LOG.replace("    40 ", "    30 leader 1001 epoch 2 at 1000\n    40 ")
    new = """
        at 1600 broker-1 to controller-2 heartbeat epoch 1 offset 10 -> ok at 1601
        at 1700 broker-2 to controller-2 heartbeat epoch 2 offset 10 -> ok lowest 10 at 1701
    """
    assert not told(BEATS + new + ONE.format(9), log=log, controllers=2)
    back = ONE.format(9).replace("broker-1", "broker-1 to controller-2")
    assert told(BEATS + new + back, log=log, controllers=2)


RAISED = """
    at 4000 broker-1 heartbeat epoch 1 offset 41 -> ok lowest 10 at 4001
    at 4500 broker-2 heartbeat epoch 2 offset {} -> ok lowest 10 at 4501
    at 9000 broker-2 heartbeat epoch 2 offset 50 -> ok lowest 41 at 9001
"""
OFFER = "at 5000 clients to broker-1 versions -> ok level {} at 5001\n"


def test_a_level_is_offered_that_a_broker_does_not_know_yet() -> None:
    assert_proof(
        only(offered(RAISED.format(39) + OFFER.format(3)), "broker-1"),
        "offered metadata.version {stated}",
        target="broker-1",
        stated=3,
        answered=5001,
        answer_frame=31,
        begin_offset=40,
        broker_id=2,
        broker_epoch=2,
        acknowledged=39,
    )
    assert not offered(RAISED.format(40) + OFFER.format(3))
    assert offered(RAISED.format(39) + OFFER.format(14))  # as the log states it


def test_an_older_level_or_no_answer_is_no_offer() -> None:
    assert not offered(RAISED.format(39) + OFFER.format(2))
    assert not offered(RAISED.format(39) + OFFER.format(3).replace("ok level 3 at 5001", "nothing"))


def test_a_fenced_broker_need_not_know_a_level() -> None:
    log = LOG.replace("    90 ", "    60 fence 2 at 4700\n    90 ")
    assert not offered(RAISED.format(39) + OFFER.format(3), log=log)


def test_a_level_under_which_nothing_is_told_promises_nothing() -> None:
    untold = RAISED.replace("lowest 41", "lowest 39")
    assert not offered(untold.format(39) + OFFER.format(3))


def test_without_a_log_no_offer_is_judged() -> None:
    assert doubts(asked(early_offers, tables("", OFFER.format(3)), FACTS))
    assert not doubts(asked(early_offers, tables("", RAISED.format(39)), FACTS))
