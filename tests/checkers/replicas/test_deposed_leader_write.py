"""D25: records that a leader took though it had applied the end of its term."""

import pyarrow as pa
import pytest
from metadata_logs import asked, case_count, facts, proofs, tables
from proving import assert_proof, only
from replica_disks import disks, sends

from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.deposed_leader_write import deposed_leader_writes
from fencepost.history.cluster_schema import METADATA_OFFSETS, REPLICA_RECORDS
from fencepost.history.schema import FAULTS, RECORDS

LOG = """
    5 topic t at -8000
    7 partition t-0 replicas 1,2 isr 1,2 leader 1 at -8000
    20 change t-0 isr 2 leader 2 at 1000
    90 noop at 9000
"""
HELD = """
    broker-1: 17@0 18@1:{epoch} hw 2
    broker-2: 17@0 18@1:{epoch} hw 2
"""
SENT = "17@0 at 500..510\n18@1 at {call}..3050"


def knowing(*said: tuple[str, int, int]) -> pa.Table:
    """Heartbeats: (node, offset, ms)."""
    rows = [
        {"time_ns": at * 1_000_000, "node": node, "metadata_offset": offset, "source": "heartbeat"}
        for node, offset, at in said
    ]
    return pa.Table.from_pylist(rows, schema=METADATA_OFFSETS)


def fault(name: str, node: str, *, begin_ms: int, end_ms: int | None) -> pa.Table:
    row = {
        "index": 0,
        "fault": name,
        "targets": [node],
        "begin_ns": begin_ms * 1_000_000,
        "end_ns": None if end_ms is None else end_ms * 1_000_000,
    }
    return pa.Table.from_pylist([row], schema=FAULTS)


KNEW = knowing(("broker-1", 20, 1500))


def given(
    *,
    log: str = LOG,
    held: str = HELD.format(epoch=0),
    call: int = 3000,
    offsets: pa.Table = KNEW,
    **others: pa.Table,
) -> dict[str, pa.Table]:
    own = {"records": sends(SENT.format(call=call)), "metadata_offsets": offsets, **disks(held)}
    return tables(log, **{**own, **others})


def found(**told: object) -> dict[str, list[Proof]]:
    return proofs(asked(deposed_leader_writes, given(**told), facts()))  # type: ignore[arg-type]


def cases(**told: object) -> int:
    return case_count(asked(deposed_leader_writes, given(**told), facts()))  # type: ignore[arg-type]


def test_a_leader_that_knows_of_its_successor_takes_a_record() -> None:
    assert_proof(
        only(found(), "t-0"),
        "broker {leader} took them",
        count=1,
        first=1,
        min=3000,
        max=3050,
        epoch=0,
        leader=1,
        metadata_offset=20,
        following=1,
        successor=2,
    )
    assert cases() == 2


def test_a_record_of_the_new_leader_is_none_of_the_old_one() -> None:
    assert not found(held=HELD.format(epoch=1))
    assert cases(held=HELD.format(epoch=1)) == 1


@pytest.mark.parametrize("call", [900, 2400])
def test_a_leader_may_go_on_until_it_has_applied_the_end_of_its_term(call: int) -> None:
    assert not found(call=call)
    assert cases(call=call) == 2


@pytest.mark.parametrize(
    "offsets",
    [knowing(), knowing(("broker-1", 19, 1500)), knowing(("broker-2", 20, 1500))],
    ids=["nothing was said", "it knows less", "another one knows"],
)
def test_a_paused_deaf_or_cut_off_leader_is_not_accused(offsets: pa.Table) -> None:
    assert not found(offsets=offsets)
    assert cases(offsets=offsets) == 0


def test_a_leader_that_is_elected_again_begins_another_epoch() -> None:
    again = LOG.replace("isr 2 leader 2 at 1000", "isr 1,2 leader 1 at 1000")
    assert found(log=again)
    assert not found(log=again, held=HELD.format(epoch=1))


def test_a_fenced_leader_without_a_successor_is_deposed_as_well() -> None:
    fenced = LOG.replace("isr 2 leader 2 at 1000", "isr 1 leader -1 at 1000")
    assert found(log=fenced)
    assert not found(log=fenced, offsets=knowing())


def test_replicas_that_are_at_odds_or_do_not_hold_it_tell_nothing() -> None:
    other = HELD.format(epoch=0).replace("18@1:0", "18@1:1", 1)
    assert not found(held=other)
    assert not found(held=HELD.format(epoch=0).replace("18@1", "19@1"))
    assert cases(held=other) == 1
    alone = "broker-1: 17@0 18@1 hw 2\nbroker-2: nothing hw 0"
    assert found(held=alone)


@pytest.mark.parametrize("outcome", ["info", "fail"])
def test_a_send_of_a_client_that_crashed_is_no_acknowledgement(outcome: str) -> None:
    rows = [
        row | ({"outcome": outcome, "return_ns": None} if row["value"] == 18 else {})
        for row in sends(SENT.format(call=3000)).to_pylist()
    ]
    records = pa.Table.from_pylist(rows, schema=RECORDS)
    assert not found(records=records)
    assert cases(records=records) == 1


def test_emptied_tables_accuse_nobody() -> None:
    assert not found(replica_records=REPLICA_RECORDS.empty_table())
    assert not found(metadata_offsets=METADATA_OFFSETS.empty_table())
    assert not found(log="5 topic t at -8000")


def test_a_leader_that_stood_still_since_it_said_so_has_not_acted_upon_it_yet() -> None:
    # Releases before 3.5 note an offset first, and then apply what is there.
    assert not found(faults=fault("pause", "broker-1", begin_ms=1600, end_ms=2900))
    assert not found(faults=fault("pause", "broker-1", begin_ms=1600, end_ms=None))
    assert found(faults=fault("pause", "broker-1", begin_ms=1600, end_ms=1900))
    assert found(faults=fault("pause", "broker-2", begin_ms=1600, end_ms=2900))
