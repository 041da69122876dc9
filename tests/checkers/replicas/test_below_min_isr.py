"""D20: records that were acknowledged while the ISR was too small."""

import pyarrow as pa
import pytest
from histories import history
from metadata_logs import asked, doubts, facts, proofs, tables
from proving import assert_proof, only

from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.below_min_isr import acknowledged_below_min_isr
from fencepost.history.cluster_schema import METADATA_OFFSETS, NODE_SETTINGS

LOG = """
    1 register 1 at -9000
    2 unfence 1 at -9000
    5 topic t at -8000
    6 config t min.insync.replicas 2 at -8000
    7 partition t-0 replicas 1,2 isr 1,2 leader 1 at -8000
    20 change t-0 isr 1 at {shrunk}
    30 change t-0 isr 1,2 at {grown}
    90 noop at 9000
"""
SENT = "p1 send t-0 v17 -> ok @3\n"


def sends(text: str = SENT, *, call_ms: int = 3000, return_ms: int = 3050) -> pa.Table:
    records = history(text).records
    for name, time_ms in (("call_ns", call_ms), ("return_ns", return_ms)):
        place = records.schema.get_field_index(name)
        times = pa.array([time_ms * 1_000_000] * len(records), pa.int64())
        records = records.set_column(place, records.schema.field(place), times)
    return records


def knowing(time_ms: int | None, *, offset: int = 20, node: str = "broker-1") -> pa.Table:
    said_ns = [] if time_ms is None else [time_ms * 1_000_000]
    rows = [
        {"time_ns": time_ns, "node": node, "metadata_offset": offset, "source": "heartbeat"}
        for time_ns in said_ns
    ]
    return pa.Table.from_pylist(rows, schema=METADATA_OFFSETS)


def settings(value: int | None) -> pa.Table:
    rows = [
        {"node": f"broker-{n}", "name": "min.insync.replicas", "value": str(value)}
        for n in (1, 2, 3)
        if value is not None
    ]
    return pa.Table.from_pylist(rows, schema=NODE_SETTINGS)


def judged(
    records: pa.Table,
    *,
    offsets: pa.Table,
    log: str = LOG,
    shrunk: int = 1000,
    grown: int = 6000,
    default: int | None = None,
    acks: str = "all",
) -> dict[str, list[Proof]]:
    given = tables(
        log.format(shrunk=shrunk, grown=grown),
        records=records,
        metadata_offsets=offsets,
        node_settings=settings(default),
    )
    return proofs(asked(acknowledged_below_min_isr, given, facts(acks=acks)))


def test_a_record_is_acknowledged_while_the_isr_is_too_small() -> None:
    assert_proof(
        only(judged(sends(), offsets=knowing(1500)), "t-0"),
        "{count} records at offset {first} were sent and acknowledged between {min} and {max}",
        count=1,
        first=3,
        min=3000,
        max=3050,
        metadata_offset=20,
        leader=1,
        isr="[1]",
        replicas="[1, 2]",
        setting="min.insync.replicas",
        wanted=2,
    )


@pytest.mark.parametrize(("deleted", "is_judged"), [(-7500, True), (2990, False)])
def test_a_topic_that_was_deleted_before_any_client_used_its_name_is_not_theirs(
    deleted: int, *, is_judged: bool
) -> None:
    former = f"""
    3 topic t as id-old at -8900
    4 partition t-0 replicas 1 isr 1 leader 1 at -8900
    5 delete t at {deleted}
    6 topic t at -7000"""
    log = LOG.replace("\n    5 topic t at -8000", former).replace("    6 config", "    7 config")
    log = log.replace("    7 partition", "    8 partition")
    assert ("t-0" in judged(sends(), offsets=knowing(1500), log=log)) is is_judged


@pytest.mark.parametrize(
    ("shrunk", "grown"), [(2950, 6000), (3020, 6000), (1000, 3100), (1000, 2000)]
)
def test_the_isr_may_have_been_large_enough_at_some_time(shrunk: int, grown: int) -> None:
    assert not judged(sends(), offsets=knowing(1500), shrunk=shrunk, grown=grown)


def test_a_leader_that_may_not_have_known_is_not_accused() -> None:
    assert not judged(sends(), offsets=knowing(None))
    assert not judged(sends(), offsets=knowing(2100))
    assert not judged(sends(), offsets=knowing(1500, offset=19))
    assert not judged(sends(), offsets=knowing(1500, node="broker-2"))


def test_only_an_acknowledgement_counts() -> None:
    for outcome in ("info", "fail"):
        unacknowledged = sends(SENT.replace("ok @3", outcome))
        assert not judged(unacknowledged, offsets=knowing(1500))
    assert not judged(sends(), offsets=knowing(1500), acks="1")


def test_the_smallest_setting_that_there_can_have_been_counts() -> None:
    lowered = LOG.replace("    20 ", "    10 config t min.insync.replicas 1 at -7000\n    20 ")
    assert not judged(sends(), offsets=knowing(1500), log=lowered)
    bare = LOG.replace("    6 config t min.insync.replicas 2 at -8000\n", "")
    assert not judged(sends(), offsets=knowing(1500), log=bare)
    assert judged(sends(), offsets=knowing(1500), log=bare, default=2)
    of_all = bare.replace("    20 ", "    10 config - min.insync.replicas 1 at -7000\n    20 ")
    assert not judged(sends(), offsets=knowing(1500), log=of_all, default=2)


def test_no_more_is_asked_for_than_there_are_replicas() -> None:
    alone = LOG.replace("replicas 1,2 isr 1,2", "replicas 1 isr 1").replace(
        "isr 1,2 at", "isr 1 at"
    )
    assert not judged(sends(), offsets=knowing(1500), log=alone)


def test_two_partitions_of_one_name_are_not_told_apart() -> None:
    again = LOG.replace(
        "    90 ",
        "    40 delete t at 7000\n    41 topic t as id-2 at 7000\n"
        "    42 partition t-0 replicas 1,2 isr 1,2 leader 1 at 7000\n    90 ",
    )
    given = tables(
        again.format(shrunk=1000, grown=6000),
        records=sends(),
        metadata_offsets=knowing(1500),
        node_settings=settings(None),
    )
    assert "2 partitions" in doubts(asked(acknowledged_below_min_isr, given, facts()))["t-0"]
