"""D26: replicas that were moved away and are still on a disk."""

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, doubts, metadata_log, proofs, tables
from proving import assert_proof

from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.stray_replica import stray_replicas
from fencepost.history.cluster_schema import METADATA_OFFSETS, REPLICAS
from fencepost.history.schema import FAULTS

LOG = """
    0 register 3{fenced} at 50
    1 topic t as id-a
    2 partition t-0 replicas 3,1 isr 3,1 leader 3
    5 change t-0 replicas 3,1,2
    7 change t-0 replicas 1,2 isr 1,2 leader 1
    90 noop
"""


def judged(
    *,
    said: tuple[int, ...] = (8, 9),
    log: str = LOG,
    fenced: str = " unfenced",
    topic_id: str | None = "id-a",
    fault: str = "",
) -> tuple[list[Proof], int]:
    """The proofs on t-0, and the cases: broker 3 said these offsets, and has that replica."""
    heartbeats = [
        {
            "time_ns": (9000 + place) * 1_000_000,
            "node": "broker-3",
            "source": "heartbeat",
            "metadata_offset": offset,
        }
        for place, offset in enumerate(said)
    ]
    replica = {"node": "broker-3", "key": "t-0", "topic_id": topic_id, "log_start_offset": 0}
    replica |= {"log_end_offset": 17, "leader_epochs": [], "record_count": 17}
    broken = {"index": 0, "fault": fault, "targets": ["broker-3"], "begin_ns": 0}
    given = tables(
        log.format(fenced=fenced),
        metadata_offsets=pa.Table.from_pylist(heartbeats, schema=METADATA_OFFSETS),
        replicas=pa.Table.from_pylist([replica] if topic_id else [], schema=REPLICAS),
        faults=pa.Table.from_pylist([broken] if fault else [], schema=FAULTS),
    )
    found = list(asked(stray_replicas, given, FACTS))
    return proofs(found).get("t-0", []), case_count(found)


def test_a_replica_that_its_broker_knows_to_be_moved_away_is_still_there() -> None:
    (proof,), cases = judged()
    assert cases == 1
    assert_proof(
        proof,
        "on its disk in the end",
        node="broker-3",
        key="t-0",
        topic_id="id-a",
        end=17,
        metadata_offset=7,
        known=9001.0,
    )


def test_one_that_is_gone_or_of_another_topic_of_that_name_is_right() -> None:
    assert judged(topic_id=None) == ([], 1)
    assert judged(topic_id="id-b") == ([], 1)


@pytest.mark.parametrize("said", [(6,), (6, 7), (7, 8), (8, 8)])
def test_nothing_is_judged_before_the_broker_says_that_it_knows(said: tuple[int, ...]) -> None:
    assert judged(said=said) == ([], 0)


@pytest.mark.parametrize(
    "later", ["8 change t-0 replicas 1,2,3", "8 delete t"], ids=["moved-back", "deleted"]
)
def test_nothing_is_judged_of_what_was_moved_back_or_deleted(later: str) -> None:
    assert judged(said=(88, 89), log=LOG.replace("90 noop", f"{later}\n    90 noop")) == ([], 0)


@pytest.mark.parametrize(("fault", "cases"), [("kill", 1), ("cut_power", 0), ("fill_disk", 0)])
def test_nothing_is_judged_of_a_disk_that_was_changed(fault: str, cases: int) -> None:
    assert judged(fault=fault)[1] == cases


def test_a_broker_that_starts_says_how_far_it_has_read_before_it_applies_anything() -> None:
    assert judged(fenced="") == ([], 0)
    unfenced_later = LOG.replace("90 noop", "{}\n    90 noop at 30000")
    assert (
        judged(
            fenced="", log=unfenced_later.replace("{}", "8 unfence 3 at 800\n    9 noop at 1000")
        )[1]
        == 1
    )
    # It is said by another process than the one that was unfenced.
    again = unfenced_later.replace("{}", "8 register 3 at 800")
    assert judged(log=again) == ([], 0)
    assert judged(log=again.replace("at 800", "at 20000"))[1] == 1


def test_without_a_log_of_record_it_is_unknown() -> None:
    empty = {
        "metadata_offsets": METADATA_OFFSETS.empty_table(),
        "replicas": REPLICAS.empty_table(),
        "faults": FAULTS.empty_table(),
    }
    assert doubts(
        asked(stray_replicas, tables(metadata_log(broker_1=LOG.format(fenced="")), **empty), FACTS)
    )
