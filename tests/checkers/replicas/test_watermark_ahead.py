"""D30: high watermarks that clients were told before anything was there."""

import pyarrow as pa
import pytest
from metadata_logs import asked, case_count, facts, proofs, tables
from proving import assert_proof, only
from replica_disks import disks, faults, sends

from fencepost.checkers.facts import Facts
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.watermark_ahead import watermarks_ahead

LOG = """
    5 topic t at -8000
    7 partition t-0 replicas 1,2 isr 1,2 leader 1 at -8000
    {}
    90 noop at 9000
"""
HELD = "broker-1: 17@0 18@1 hw 2\nbroker-2: 17@0 18@1 hw 2"
SENT = "17@0 at 500..510\n18@1 at 3000..3010"
TOLD = "at 1000 clients to broker-1 consumes t-0 -> ok watermark {} at 1500\n"
FACTS = facts(end_ns=8_000_000_000)


def judged(
    frames: str,
    *,
    held: str = HELD,
    change: str = "",
    struck: pa.Table | None = None,
    run: Facts = FACTS,
) -> tuple[dict[str, list[Proof]], int]:
    own = {
        "records": sends(SENT),
        "replicas": disks(held)["replicas"],
        "faults": struck or faults(),
    }
    found = list(asked(watermarks_ahead, tables(LOG.format(change), frames, **own), run))
    return proofs(found), case_count(found)


def test_a_record_below_it_is_sent_only_later() -> None:
    found, cases = judged(TOLD.format(2))
    told = {"high_watermark": 2, "offset": 1, "value": 18, "called": 3000, "frame": 1}
    assert_proof(only(found, "t-0"), "was sent only at {called}", **told)
    assert cases == 1


def test_what_had_been_sent_may_be_told() -> None:
    assert judged(TOLD.format(1)) == ({}, 1)
    assert judged(TOLD.format(2).replace("1500", "3500")) == ({}, 1)


def test_of_answers_that_tell_no_more_than_one_before_the_first_counts() -> None:
    found, cases = judged(TOLD.format(1) + TOLD.format(2) + TOLD.format(2) + TOLD.format(1))
    assert (only(found, "t-0").fact("frame"), cases) == (11, 2)


def test_a_member_of_the_last_isr_lacks_it() -> None:
    late = TOLD.format(5).replace("1500", "7000")
    found, _ = judged(late)
    first, second = found["t-0"] if len(found["t-0"]) > 1 else (*found["t-0"], None)
    assert second is None
    assert_proof(first, "ends at {log_end_offset}", high_watermark=5, log_end_offset=2)
    assert not judged(late, held=HELD.replace("hw 2", "end 5"))[0]


@pytest.mark.parametrize(
    ("held", "change", "struck"),
    [
        pytest.param(
            "broker-1: 17@0 18@1 end 5\nbroker-2: 17@0",
            "20 change t-0 isr 1 at 2000",
            None,
            id="it is out of the ISR",
        ),
        pytest.param(
            HELD,
            "",
            faults(("wipe", "broker-1", 7500), ("wipe", "broker-2", 7500)),
            id="its disk was lost since",
        ),
        pytest.param(
            "broker-1: 17@0 damaged\nbroker-2: 17@0 damaged", "", None, id="its end is not known"
        ),
    ],
)
def test_a_log_that_may_end_earlier(held: str, change: str, struck: pa.Table | None) -> None:
    late = TOLD.format(5).replace("1500", "7000")
    assert not judged(late, held=held, change=change, struck=struck)[0]


@pytest.mark.parametrize(
    ("struck", "count"),
    [
        pytest.param(("cut_power", "broker-2", 2000), 0, id="a disk was lost in between"),
        pytest.param(("cut_power", "broker-2", 1200), 1, id="before the answer"),
        pytest.param(("cut_power", "broker-2", 1500), 0, id="as it was answered"),
        pytest.param(("cut_power", "broker-2", 3005), 0, id="as it was sent"),
        pytest.param(("cut_power", "broker-2", 3100), 1, id="after the send"),
        pytest.param(("cut_power", "broker-3", 2000), 1, id="of no replica"),
        pytest.param(("kill", "broker-2", 2000), 1, id="a kill keeps what was written"),
    ],
)
def test_what_was_lost_with_a_disk_may_be_sent_anew(
    struck: tuple[str, str, int], count: int
) -> None:
    found, cases = judged(TOLD.format(2), struck=faults(struck))
    assert (len(found), cases) == (count, 1)


def test_under_an_unclean_election_or_without_acks_all_it_is_no_anomaly() -> None:
    assert not judged(TOLD.format(2), change="20 change t-0 isr 2 leader 2 recovering at 2000")[0]
    assert judged(TOLD.format(2), run=facts(acks="1")) == ({}, 0)


def test_no_refusal_and_nothing_that_the_proxy_made_up_tells_anything() -> None:
    refused = TOLD.format(2).replace("-> ok", "-> NOT_LEADER_OR_FOLLOWER")
    assert judged(refused) == ({}, 0)
    assert judged(TOLD.format(2).rstrip() + " by the proxy") == ({}, 0)


def test_an_answer_about_an_earlier_topic_of_the_name_is_not_about_this_one() -> None:
    log = "1 topic t as id-0 at -9000\n2 delete t at -8500\n" + LOG.format("")
    own = {"records": sends(SENT), "replicas": disks(HELD)["replicas"]}
    given = tables(log.replace("5 topic t at", "5 topic t as id-2 at"), TOLD.format(2), **own)
    assert not case_count(asked(watermarks_ahead, given, FACTS))
