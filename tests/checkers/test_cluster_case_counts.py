"""How many cases each check of the cluster judges, of what is wrong, right, or not there."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa
import pytest
from ensemble_disks import Row, disk, disks, logged, stored
from histories import history
from metadata_logs import (
    FACTS,
    ON_ZOOKEEPER,
    asked,
    case_count,
    describes,
    doubts,
    facts,
    metadata_log,
    never,
    tables,
    wire,
)
from replica_disks import disks as replicas_on_disks

from fencepost.checkers.catalogue import TABLE_CHECKS, entry_of
from fencepost.checkers.control_plane.deposed_controller_write import deposed_controller_writes
from fencepost.checkers.control_plane.epoch_check_bypassed import bypassed_epoch_checks
from fencepost.checkers.control_plane.epochs import epochs_that_went_back
from fencepost.checkers.control_plane.fencing import fenced_too_early, fenced_too_late
from fencepost.checkers.control_plane.illegal_isr import elr_overlaps, empty_isrs, strange_isrs
from fencepost.checkers.control_plane.illegal_transition import illegal_transitions
from fencepost.checkers.control_plane.inactive_leader import inactive_leaders
from fencepost.checkers.control_plane.ineligible_member import ineligible_members
from fencepost.checkers.control_plane.leaderless import leaderless
from fencepost.checkers.control_plane.lost_metadata_write import lost_metadata_writes
from fencepost.checkers.control_plane.lost_reassignment import lost_reassignments
from fencepost.checkers.control_plane.metadata_divergence import metadata_divergences
from fencepost.checkers.control_plane.metadata_watermark_ahead import metadata_watermarks_ahead
from fencepost.checkers.control_plane.nonlinearizable_isr import nonlinearizable_isrs
from fencepost.checkers.control_plane.shared_identity import shared_identities
from fencepost.checkers.control_plane.shared_producer_ids import shared_producer_ids
from fencepost.checkers.control_plane.stale_controller import stale_controllers
from fencepost.checkers.control_plane.stale_epoch_join import stale_epoch_joins
from fencepost.checkers.control_plane.stale_request_accepted import stale_requests_accepted
from fencepost.checkers.control_plane.two_leaders import two_leaders
from fencepost.checkers.control_plane.unasked_change import unasked_changes
from fencepost.checkers.control_plane.unfetched_epoch import unfetched_epochs
from fencepost.checkers.control_plane.unlogged_setting import unlogged_settings
from fencepost.checkers.control_plane.unwritten_setting import unwritten_settings
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.grounds.node_logs import CHECKS as NODE_CHECKS
from fencepost.checkers.life_cycle.controller_heartbeats import (
    accepted_heartbeats,
    refused_incarnations,
    timeouts_out_of_order,
    ungated_requests,
)
from fencepost.checkers.life_cycle.duplicate_id import duplicate_ids
from fencepost.checkers.life_cycle.host_ids import host_garbage, wrong_ids, wrong_mappings
from fencepost.checkers.life_cycle.incarnation_went_back import incarnations_that_went_back
from fencepost.checkers.life_cycle.never_unfenced import never_unfenced
from fencepost.checkers.life_cycle.refused_but_running import refused_but_running
from fencepost.checkers.life_cycle.served_while_fenced import served_while_fenced
from fencepost.checkers.life_cycle.shared_registration import shared_registrations
from fencepost.checkers.life_cycle.unsafe_shutdown import unsafe_shutdowns
from fencepost.checkers.replicas.below_min_isr import acknowledged_below_min_isr
from fencepost.checkers.replicas.deposed_leader_write import deposed_leader_writes
from fencepost.checkers.replicas.stray_replica import stray_replicas
from fencepost.checkers.slices import OF_KEYS
from fencepost.checkers.visibility.early_level import early_offers
from fencepost.checkers.visibility.false_lowest import false_lowest_offsets
from fencepost.checkers.visibility.unlogged_replicas import unlogged_replicas
from fencepost.checkers.visibility.wrong_topic_id import wrong_topic_ids
from fencepost.checkers.znodes.server_disks import (
    divergent_transactions,
    divergent_trees,
    orphan_ephemerals,
)
from fencepost.history.cluster_schema import (
    METADATA_OFFSETS,
    NODE_SETTINGS,
    QUORUM_CLAIMS,
    REPLICAS,
)
from fencepost.history.ensemble_schema import ENSEMBLE
from fencepost.history.request_schema import (
    DESCRIBES,
    METADATA_WRITES,
    PARTITION_WRITES,
    TOPIC_SETTINGS,
)
from fencepost.history.schema import FAULTS

THREE = facts(controllers=3)
MS = 1_000_000


def rows_of(schema: pa.Schema, *rows: dict[str, object]) -> pa.Table:
    """A table of these rows, their times in ms."""
    timed = ("time_ns", "call_ns", "return_ns")
    told = [
        {name: value * MS if name in timed else value for name, value in row.items()}
        for row in rows
    ]
    return pa.Table.from_pylist(told, schema=schema)


def claims(*told: tuple[int, str, int]) -> pa.Table:
    named = ("time_ns", "node", "controller_epoch")
    return rows_of(QUORUM_CLAIMS, *(dict(zip(named, one, strict=True)) for one in told))


def applied(*told: tuple[int, str, int]) -> pa.Table:
    named = ("time_ns", "node", "metadata_offset")
    rows = ({"source": "heartbeat", **dict(zip(named, one, strict=True))} for one in told)
    return rows_of(METADATA_OFFSETS, *rows)


def created(topic_id: str) -> pa.Table:
    row = {"index": 0, "process": 0, "f": "create-topic", "node": "broker-1", "topic": "t"}
    times = {"call_ns": 450, "return_ns": 550, "outcome": "ok"}
    return rows_of(METADATA_WRITES, row | times | {"topic_id": topic_id})


SET = """
    1 topic t at 1000
    2 partition t-0 replicas 1,2 isr 1,2 leader 1 at 1000
    3 config t retention.ms 1000000000007 at 2000
    90 noop at 9000
"""


def altered(value: int) -> pa.Table:
    """A change of a setting, and a write later on."""
    row = {"process": 0, "f": "alter-config", "node": "broker-1", "topic": "t", "outcome": "ok"}
    first = row | {"index": 0, "config_value": value, "call_ns": 1900, "return_ns": 2100}
    return rows_of(METADATA_WRITES, first, first | {"index": 1, "call_ns": 8000, "return_ns": 8100})


def shown(topic_id: str, at_ms: int = 3000) -> pa.Table:
    return describes(f"broker-1 showed t-0 as {topic_id} leader 1 isr 1,2 at {at_ms}..{at_ms + 10}")


def replicas_shown(*replicas: int, at_ms: int = 3000) -> pa.Table:
    (row,) = shown("id-t", at_ms).to_pylist()
    return pa.Table.from_pylist([row | {"replicas": list(replicas)}], schema=DESCRIBES)


def showed(value: str, *, topic_id: str = "id-t") -> pa.Table:
    settings = [{"name": "retention.ms", "value": value}]
    row = {"node": "broker-1", "topic": "t", "topic_id": topic_id, "settings": settings}
    return rows_of(TOPIC_SETTINGS, row | {"call_ns": 3000, "return_ns": 3005})


def moved(*replicas: int) -> pa.Table:
    row = {"index": 0, "process": 0, "f": "reassign", "node": "broker-1", "topic": "t"}
    times = {"call_ns": 650, "return_ns": 750, "outcome": "ok"}
    return rows_of(PARTITION_WRITES, row | times | {"partition": 0, "replicas": list(replicas)})


def sent(call_ms: int) -> pa.Table:
    records = history("p1 send t-0 v17 -> ok @3").records
    for name, time_ms in (("call_ns", call_ms), ("return_ns", call_ms + 50)):
        place = records.schema.get_field_index(name)
        records = records.set_column(
            place, records.schema.field(place), pa.array([time_ms * MS], pa.int64())
        )
    return records


SETTINGS = rows_of(
    NODE_SETTINGS,
    {"node": "controller-1", "name": "broker.session.timeout.ms", "value": "3000"},
)
EMPTY = {
    "quorum_claims": claims(),
    "metadata_offsets": applied(),
    "metadata_writes": METADATA_WRITES.empty_table(),
    "partition_writes": PARTITION_WRITES.empty_table(),
    "node_settings": SETTINGS,
    "topic_settings": TOPIC_SETTINGS.empty_table(),
    "replicas": REPLICAS.empty_table(),
    "records": sent(0).slice(0, 0),
}


def given(log: str | pa.Table, frames: str = "", **others: pa.Table) -> Tables:
    return tables(log, frames, **{**EMPTY, **others})


TAKEN = metadata_log(zookeeper_1="1 register 1 unfenced\n2 register 1 unfenced\n3 topic t")
OFFICES = {
    "metadata_log": metadata_log(
        zookeeper_1="1 leader 1\n2 leader 2\n3 topic t\n4 partition t-0 replicas 1,2 isr 1,2 "
        "leader 1\n5 change t-0 isr 2 leader 2"
    )
}


def kept(node: str) -> pa.Table:
    row = {"node": node, "key": "t-0", "topic_id": "id-t", "log_start_offset": 0}
    return rows_of(REPLICAS, row | {"log_end_offset": 9, "leader_epochs": [], "record_count": 9})


MOVED_FROM = """
    1 register 1 unfenced at 100
    3 topic t at 300
    4 partition t-0 replicas 1,2 isr 1,2 leader 1 at 400
    10 change t-0 replicas 2,3 isr 2,3 leader 2 at 1000
    99 noop at 9900
"""
SAID = applied((5_000_000_000, "broker-1", 11), (6_000_000_000, "broker-1", 12))
MOVED = """
    3 topic t
    4 partition t-0 replicas 1,2 isr 1,2 leader 1
    10 change t-0 replicas 2,3 isr 2,3 leader 2
"""
GROWN = """
    1 register 1 unfenced
    2 register 2 unfenced
    3 topic t
    4 partition t-0 replicas 1,2 isr 1 leader 1
    10 change t-0 isr 1,2
"""
ASKED_FOR = "at 900 broker-1 alter t-0 expecting 0 isr 1,2 -> {} at 1005"
LED_BY_NONE = """
    0 leader 1000
    1 register 1 unfenced
    2 topic t
    3 partition t-0 replicas 1,2 isr 1 leader -1
    4 change t-0 leader 1 at {}
    9 noop at 60000
"""
ALLOCATED = """
    at 3000 broker-1 allocates for 1 -> ok 1000 at 3001
    at 4000 broker-2 allocates for 3 -> ok {} at 4001
"""
STILL_FENCED = "0 leader 1000\n1 register 1 at 1000\n2 unfence 1 at {}\n9 noop at 60000"
BEATING = "\n".join(
    f"at {at} broker-1 heartbeat epoch 1 offset 1 -> ok at {at + 1}"
    for at in range(2000, 40_000, 2000)
)


TELLS = "at 9000 broker-2 to broker-1 tells epoch 1 for 1 -> {} at 9010"
BEATS = "at 9000 broker-1 to broker-2 beats epoch 2 -> {} at 9010"
WANTS = "at 9000 broker-1 to broker-2 beats epoch 2 wanting INITIAL -> {} at 9010"
HEARD = "at 300 broker-1 to broker-2 beats epoch 2 -> ok at 303"


def side_by_side(broker_side: int) -> Tables:
    told = {"controller.heartbeat.timeout.ms": 2000, "broker.heartbeat.timeout.ms": broker_side}
    rows = ({"node": "broker-1", "name": name, "value": str(one)} for name, one in told.items())
    return {"node_settings": rows_of(NODE_SETTINGS, *rows)}


NEW = {
    "metadata_log": metadata_log(
        zookeeper_1="1 leader 2\n2 register 1 unfenced\n3 topic t\n4 partition t-0 replicas 1,2 "
        "isr 1,2 leader 1"
    ),
    "ensemble": ENSEMBLE.empty_table(),
}


def below(node: str) -> pa.Table:
    told = {"node": node, "name": "inter.broker.protocol.version", "value": "1"}
    return rows_of(NODE_SETTINGS, told)


def sessions_of(*sessions: int) -> list[Row]:
    """Transactions 1, 2, … of these sessions."""
    return [
        logged("zookeeper-1", zxid, "setData", "/z", session=session)
        for zxid, session in enumerate(sessions, 1)
    ]


def hosts(log: str) -> Tables:
    told = {"node": "broker-1", "name": "host.name", "value": "h1"}
    return {
        "metadata_log": metadata_log(zookeeper_1=log),
        "node_settings": rows_of(NODE_SETTINGS, told),
        "faults": FAULTS.empty_table(),
    }


@dataclass(frozen=True, kw_only=True)
class Check:
    """A check with what it finds wrong, what it finds right, and what it cannot judge."""

    kernel: Callable[[Tables, Facts], Judged]
    bad: Tables
    bad_count: int
    good: Tables
    good_count: int
    nothing: Tables
    facts: Facts = field(default=FACTS)


ENDS = (disk("a", last=9), disk("b", last=9))
PAIR = "1 register 1\n2 unfence 1\n3 register 2\n4 unfence 2\n5 topic t\n"
ISR = PAIR + "6 partition t-0 replicas 1,2 isr 1,2 leader 1\n"
SHRUNK = ISR + "10 change t-0 isr 1\n"
JOINED = SHRUNK + "{}\n13 change t-0 isr 1,2\n90 noop"
ALTER = "at 1250 broker-1 alter t-0 expecting 1 isr 1:1,2:{} -> {} at 1310"
FENCED = "0 leader 1000 at 0\n1 register 1 at 100\n2 unfence 1 at 200\n3 fence 1 at {}"
BEAT = "at 5000 broker-1 heartbeat epoch 1 -> ok at 5002"
SILENT = "0 leader 1000 at 0\n1 register 1 at 100\n2 unfence 1 at 200\n" + "\n".join(
    f"{number} noop at {5000 + 500 * number}" for number in range(3, 40)
)
DELAYED = """
    at 300 broker-2 register -> ok 3 at 310
    at 19990 broker-2 register -> ok 33 at 20010
    at {} passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010
"""
FETCHED = """
    at 21000 broker-2 to broker-1 fetches t-0 epoch {} -> nothing
    at 21990 broker-1 alter t-0 expecting 1 isr 1:1,2:33 -> ok 2 at 22010
"""
CAME_BACK = SHRUNK + "33 register 2 at 20000\n34 unfence 2 at 20500\n36 change t-0 isr 1,2 at 22000"
TWICE = "at 100 broker-2 register -> ok 3 at 110\nat 900 broker-2 register -> ok 9 at 910\n"
OLD_BEAT = "at 911 broker-2 heartbeat epoch 3 offset 1 -> {} at 950"
REFUSED = "at 1000 broker-1 register incarnation a -> DUPLICATE_BROKER_REGISTRATION at 1005\n"
ANOTHER = "0 leader 1000 at 0\n1 register 1 incarnation a at 100\n2 unfence 1 at 200\n"
LEAVING = "at 5000 broker-1 heartbeat epoch 1 asking leave -> ok told leave at 5002"
LED = ISR + "{}\n90 noop"
TOLD = """
    at 1000 broker-1 heartbeat epoch 1 offset 10 -> ok at 1001
    at 1500 broker-2 heartbeat epoch 2 offset 9 -> ok at 1501
    at 2000 broker-1 heartbeat epoch 1 offset 10 -> ok lowest {} at 2002
"""
LEVEL = """
    0 leader 1000 at 0
    1 register 1 at 100
    2 register 2 at 100
    3 unfence 1 at 200
    4 unfence 2 at 200
    40 feature metadata.version 14 at 3000
    90 noop at 20000
"""
RAISED = """
    at 4000 broker-1 heartbeat epoch 1 offset 41 -> ok at 4001
    at 4500 broker-2 heartbeat epoch 2 offset {} -> ok at 4501
    at 9000 broker-2 heartbeat epoch 2 offset 50 -> ok lowest 41 at 9001
"""
OFFER = "at 5000 clients to broker-1 versions -> ok level 3 at 5001\n"
TOO_SMALL = """
    1 register 1 at -9000
    5 topic t at -8000
    6 config t min.insync.replicas {} at -8000
    7 partition t-0 replicas 1,2 isr 1,2 leader 1 at -8000
    20 change t-0 isr {} at 1000
    90 noop at 9000
"""
DEPOSED = ((1000, "controller-1", 1), (3000, "controller-2", 2))
STILL = tuple((at_ms, "controller-1", 1) for at_ms in range(4000, 15_000, 3000))
KNOWN = applied((1500, "broker-1", 20))
TERMS = TOO_SMALL.format(1, "2 leader 2")
TOOK = replicas_on_disks("broker-1: 17@3 hw 4")
SERVED = "broker-1 showed t-0 leader 1 isr 1 at {}\nbroker-1 showed t-0 leader 1 isr 1 at {}"
WATERMARK = "at 1000 broker-1 fetch epoch 1 from 0 -> {} watermark {} at 1010"
CHECKS = (
    Check(
        kernel=metadata_watermarks_ahead,
        bad=given(SHRUNK + "90 noop", WATERMARK.format("ok", 91)),
        bad_count=1,
        good=given(SHRUNK + "90 noop", WATERMARK.format("ok", 10)),
        good_count=1,
        nothing=given(SHRUNK + "90 noop", WATERMARK.format("NOT_LEADER_OR_FOLLOWER", 91)),
    ),
    Check(
        kernel=nonlinearizable_isrs,
        bad=given(SHRUNK + "90 noop", "at 790 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 810"),
        bad_count=1,
        good=given(
            SHRUNK + "90 noop",
            """
            at 990 broker-1 alter t-0 expecting 0 isr 1 -> ok 1 at 1010
            at 1100 broker-1 alter t-0 expecting 0 isr 1 -> INVALID_UPDATE_VERSION at 1110
            """,
        ),
        good_count=2,
        nothing=given(
            SHRUNK + "90 noop",
            describes=describes("broker-2 showed t-0 leader 1 isr 1 leader-epoch 0 at 1900..1901"),
        ),
    ),
    Check(
        kernel=stale_epoch_joins,
        bad=given(CAME_BACK, DELAYED.format(9812)),
        bad_count=1,
        good=given(CAME_BACK, DELAYED.format(20011)),
        good_count=1,
        nothing=given(CAME_BACK),
    ),
    Check(
        kernel=unasked_changes,
        bad=given(GROWN, ASKED_FOR.format("INVALID_UPDATE_VERSION")),
        bad_count=1,
        good=given(GROWN, ASKED_FOR.format("ok 1")),
        good_count=1,
        nothing=given(GROWN),
    ),
    Check(
        kernel=unwritten_settings,
        bad=given(SET),
        bad_count=1,
        good=given(SET, metadata_writes=altered(7)),
        good_count=1,
        nothing=given(SET.replace("config t", "config u")),
    ),
    Check(
        kernel=unlogged_settings,
        bad=given(SET, topic_settings=showed("7")),
        bad_count=1,
        good=given(SET, topic_settings=showed("1000000000007")),
        good_count=1,
        nothing=given(SET, topic_settings=showed("7", topic_id="id-u")),
    ),
    Check(
        kernel=stray_replicas,
        bad=given(MOVED_FROM, replicas=kept("broker-1"), metadata_offsets=SAID),
        bad_count=1,
        good=given(MOVED_FROM, replicas=kept("broker-2"), metadata_offsets=SAID),
        good_count=1,
        nothing=given(MOVED, replicas=kept("broker-1"), metadata_offsets=SAID),
    ),
    Check(
        kernel=leaderless,
        bad=given(LED_BY_NONE.format(30_000)),
        bad_count=2,
        good=given(LED_BY_NONE.format(5_000)),
        good_count=1,
        nothing=given(GROWN),
    ),
    Check(
        kernel=never_unfenced,
        bad=given(STILL_FENCED.format(30_000), BEATING),
        bad_count=1,
        good=given(STILL_FENCED.format(5_000), BEATING),
        good_count=1,
        nothing=given(STILL_FENCED.format(5_000)),
    ),
    Check(
        kernel=unfetched_epochs,
        bad=given(CAME_BACK, FETCHED.format(3)),
        bad_count=1,
        good=given(CAME_BACK, FETCHED.format(33)),
        good_count=1,
        nothing=given(CAME_BACK, FETCHED.format(3).replace("2:33", "2:-1")),
    ),
    Check(
        kernel=ineligible_members,
        bad=given(JOINED.format("11 fence 2")),
        bad_count=2,
        good=given(JOINED.format("")),
        good_count=1,
        nothing=given(SHRUNK),
    ),
    Check(
        kernel=ineligible_members,
        bad=given(ISR + "10 fence 2 at 1000\n11 change t-0 isr 1 at 13000"),
        bad_count=1,
        good=given(ISR + "10 change t-0 isr 1 at 1000\n11 fence 2 at 1000"),
        good_count=1,
        nothing=given(ISR),
    ),
    Check(
        kernel=divergent_transactions,
        bad=disks(logged("a", 5, "delete", content=1), logged("b", 5, "delete", content=2)),
        bad_count=1,
        good=disks(logged("a", 5, "delete", content=1), logged("b", 5, "delete", content=1)),
        good_count=1,
        nothing=disks(logged("a", 5, "delete"), logged("b", 6, "delete")),
    ),
    Check(
        kernel=divergent_trees,
        bad=disks(*ENDS, stored("a", "/x", version=1), stored("b", "/x"), stored("b", "/y")),
        bad_count=2,
        good=disks(*ENDS, stored("a", "/x"), stored("b", "/x")),
        good_count=1,
        nothing=disks(ENDS[0], stored("a", "/x", version=1), stored("b", "/x")),
    ),
    Check(
        kernel=orphan_ephemerals,
        bad=disks(
            stored("a", "/x", session_open=False),
            stored("b", "/x", session_open=True),
        ),
        bad_count=2,
        good=disks(stored("a", "/x", session_open=True)),
        good_count=1,
        nothing=disks(stored("a", "/x")),
    ),
    Check(
        kernel=two_leaders,
        bad=given(ISR, "at 1100 broker-2 alter t-0 expecting 1 isr 1 -> nothing"),
        bad_count=2,
        good=given(ISR, "at 1100 broker-1 alter t-0 expecting 1 isr 1 -> nothing"),
        good_count=2,
        nothing=given(PAIR, quorum_claims=claims((1000, "controller-1", 1))),
    ),
    Check(
        kernel=two_leaders,
        facts=THREE,
        bad=given(PAIR, quorum_claims=claims((1, "controller-1", 1), (2, "controller-2", 1))),
        bad_count=1,
        good=given(
            metadata_log(controller_1="0 leader 1000\n1 noop", controller_2="0 leader 1000"),
            quorum_claims=claims((1, "controller-1", 1), (2, "controller-2", 2)),
        ),
        good_count=1,
        nothing=given(
            metadata_log(controller_1="1 noop", controller_2="1 noop"),
            quorum_claims=claims((1, "controller-1", 1), (2, "controller-2", 2)),
        ),
    ),
    Check(
        kernel=epochs_that_went_back,
        bad=given("0 noop", "at 900 broker-1 alter t-0 expecting 5 isr 1 -> ok 7 at 910"),
        bad_count=1,
        good=given(SHRUNK, "at 900 broker-1 alter t-0 expecting 5 isr 1 -> ok 6 at 910"),
        good_count=6 + 1 + 1,  # steps of the log, of the partition, of the answer
        nothing=given("0 noop"),
    ),
    Check(
        kernel=shared_identities,
        bad=given("", TWICE + OLD_BEAT.format("ok")),
        bad_count=1,
        good=given("", TWICE + OLD_BEAT.format("STALE_BROKER_EPOCH")),
        good_count=1,
        nothing=given("", TWICE + OLD_BEAT.replace("epoch 3", "epoch 9").format("ok")),
    ),
    Check(
        kernel=metadata_divergences,
        facts=facts(controllers=1),
        bad=given(metadata_log(controller_1="0 noop saying a", broker_1="0 noop saying b")),
        bad_count=1,
        good=given(
            metadata_log(controller_1=ISR + "90 noop", broker_1=PAIR),
            metadata_offsets=applied((900, "broker-1", 5)),
            metadata_writes=created("id-t"),
        ),
        good_count=5 + 1 + 1,  # shared offsets, a heartbeat, a creation
        nothing=given(ISR),
    ),
    Check(
        kernel=fenced_too_early,
        bad=given(FENCED.format(7800), BEAT),
        bad_count=1,
        good=given(FENCED.format(8200), BEAT),
        good_count=1,
        nothing=given(FENCED.format(7800)),
    ),
    Check(
        kernel=fenced_too_late,
        bad=given(SILENT, BEAT),
        bad_count=1,
        good=given(FENCED.format(8200) + "\n4 noop at 9000", BEAT),
        good_count=1,
        nothing=given(SILENT),
    ),
    Check(
        kernel=empty_isrs,
        bad=given(ISR + "10 change t-0 isr none"),
        bad_count=2,
        good=given(SHRUNK),
        good_count=2,
        nothing=given(PAIR),
    ),
    Check(
        kernel=strange_isrs,
        bad=given(ISR + "10 change t-0 isr 1,3"),
        bad_count=2,
        good=given(SHRUNK),
        good_count=2,
        nothing=given(PAIR),
    ),
    Check(
        kernel=elr_overlaps,
        bad=given(ISR + "10 change t-0 isr 1,2 elr 2"),
        bad_count=1,
        good=given(SHRUNK + "11 change t-0 isr 1 elr 2\n12 change t-0 isr 1,2 elr none"),
        good_count=1,
        nothing=given(SHRUNK),
    ),
    Check(
        kernel=illegal_transitions,
        bad=given("0 leader 1000\n1 topic t\n2 topic t as id-t"),
        bad_count=2,
        good=given("0 leader 1000\n1 topic t"),
        good_count=1,
        nothing=given("0 leader 1000"),
    ),
    Check(
        kernel=bypassed_epoch_checks,
        bad=given(JOINED.format(""), ALTER.format(2, "ok 2")),
        bad_count=5,
        good=given(JOINED.format(""), ALTER.format(3, "ok 2")),
        good_count=5,
        nothing=given(JOINED.format(""), ALTER.format(2, "INELIGIBLE_REPLICA")),
    ),
    Check(
        kernel=shared_producer_ids,
        bad=given(PAIR, ALLOCATED.format(1000)),
        bad_count=2,
        good=given(PAIR, ALLOCATED.format(2000)),
        good_count=2,
        nothing=given(PAIR),
    ),
    Check(
        kernel=stale_controllers,
        facts=THREE,
        bad=given(PAIR, quorum_claims=claims(*DEPOSED, *STILL)),
        bad_count=1,
        good=given(PAIR, quorum_claims=claims(*DEPOSED, (13_000, "controller-2", 2))),
        good_count=1,
        nothing=given(PAIR, quorum_claims=claims(*DEPOSED, (12_999, "controller-2", 2))),
    ),
    Check(
        kernel=lost_metadata_writes,
        bad=given(ISR + "90 noop", metadata_writes=created("id-u")),
        bad_count=1,
        good=given(ISR + "90 noop", metadata_writes=created("id-t")),
        good_count=1,
        nothing=given(PAIR, metadata_writes=created("id-t")),
    ),
    Check(
        kernel=lost_reassignments,
        bad=given(ISR + "90 noop", partition_writes=moved(2, 3)),
        bad_count=1,
        good=given(ISR + "90 noop", partition_writes=moved(2, 1)),
        good_count=1,
        nothing=given(PAIR, partition_writes=moved(2, 3)),
    ),
    Check(
        kernel=unlogged_replicas,
        bad=given(SET, describes=replicas_shown(1, 9)),
        bad_count=1,
        good=given(SET, describes=replicas_shown(1, 2)),
        good_count=1,
        nothing=given(SET, describes=replicas_shown(1, 9, at_ms=9500)),
    ),
    Check(
        kernel=wrong_topic_ids,
        bad=given(SET, describes=shown("id-x")),
        bad_count=1,
        good=given(SET, describes=shown("id-t")),
        good_count=1,
        nothing=given(SET, describes=shown("id-x", 9500)),
    ),
    Check(
        kernel=refused_but_running,
        bad=given("", REFUSED + "at 2000 broker-1 heartbeat epoch -1 -> ok at 2001"),
        bad_count=1,
        good=given("", REFUSED),
        good_count=1,
        nothing=given("", TWICE),
    ),
    Check(
        kernel=duplicate_ids,
        bad=given(ANOTHER + "3 register 1 incarnation b at 7000", BEAT),
        bad_count=1,
        good=given(ANOTHER + "3 register 1 incarnation b at 8200", BEAT),
        good_count=1,
        nothing=given(ANOTHER + "3 register 1 incarnation b at 7000"),
    ),
    Check(
        kernel=served_while_fenced,
        facts=facts(leases=True),
        bad=given("", BEAT, describes=describes(SERVED.format("9000..9001", "9002..9003"))),
        bad_count=2,
        good=given("", BEAT, describes=describes(SERVED.format("4000..4001", "7000..7001"))),
        good_count=1,
        nothing=given("", describes=describes(SERVED.format("9000..9001", "9002..9003"))),
    ),
    Check(
        kernel=unsafe_shutdowns,
        bad=given(LED.format(""), LEAVING),
        bad_count=1,
        good=given(LED.format("7 change t-0 isr 2 leader 2"), LEAVING),
        good_count=1,
        nothing=given(LED.format(""), BEAT),
    ),
    Check(
        kernel=incarnations_that_went_back,
        bad=given("\n".join(f"{n} register 1 incarnation {one}" for n, one in enumerate("aba"))),
        bad_count=2,
        good=given("\n".join(f"{n} register 1 incarnation {one}" for n, one in enumerate("abc"))),
        good_count=2,
        nothing=given(PAIR),
    ),
    Check(
        kernel=false_lowest_offsets,
        bad=given(LEVEL, TOLD.format(10)),
        bad_count=1,
        good=given(LEVEL, TOLD.format(9)),
        good_count=1,
        nothing=given(LEVEL, TOLD.format(9).replace(" lowest 9", "")),
    ),
    Check(
        kernel=early_offers,
        bad=given(LEVEL, RAISED.format(39) + OFFER),
        bad_count=1,
        good=given(LEVEL, RAISED.format(40) + OFFER),
        good_count=1,
        nothing=given(LEVEL, RAISED.format(40).replace(" lowest 41", "") + OFFER),
    ),
    Check(
        kernel=acknowledged_below_min_isr,
        bad=given(TOO_SMALL.format(2, "1"), records=sent(3000), metadata_offsets=KNOWN),
        bad_count=1,
        good=given(TOO_SMALL.format(2, "1,2"), records=sent(3000), metadata_offsets=KNOWN),
        good_count=1,
        nothing=given(TOO_SMALL.format(2, "1"), records=sent(3000)),
    ),
    Check(
        kernel=deposed_leader_writes,
        bad=given(TERMS, records=sent(3000), metadata_offsets=KNOWN, **TOOK),
        bad_count=1,
        good=given(TERMS, records=sent(1600), metadata_offsets=KNOWN, **TOOK),
        good_count=1,
        nothing=given(TERMS, records=sent(3000), **TOOK),
    ),
    Check(
        kernel=deposed_controller_writes,
        facts=ON_ZOOKEEPER,
        bad={**OFFICES, **disks(*sessions_of(71, 72, 72, 72, 71))},
        bad_count=1,
        good={**OFFICES, **disks(*sessions_of(71, 72, 72, 72, 72))},
        good_count=1,
        nothing={**OFFICES, **disks(*sessions_of(71, 72, 72, 72, 99))},
    ),
    Check(
        kernel=shared_registrations,
        facts=ON_ZOOKEEPER,
        bad={"metadata_log": TAKEN, **disks(*sessions_of(71, 72, 71))},
        bad_count=1,
        good={"metadata_log": TAKEN, **disks(*sessions_of(71, 72, 72))},
        good_count=1,
        nothing={"metadata_log": TAKEN, **disks(*sessions_of(71, 71, 71))},
    ),
    Check(
        kernel=stale_requests_accepted,
        facts=ON_ZOOKEEPER,
        bad=given(TAKEN, TELLS.format("ok")),
        bad_count=1,
        good=given(TAKEN, TELLS.format("STALE_BROKER_EPOCH")),
        good_count=1,
        nothing=given(TAKEN, BEATS.format("ok")),
    ),
    Check(
        kernel=refused_incarnations,
        facts=ON_ZOOKEEPER,
        bad=given(TAKEN, BEATS.format("INVALID_INCARNATION_ID")),
        bad_count=1,
        good=given(TAKEN, BEATS.format("ok")),
        good_count=1,
        nothing=given(TAKEN, TELLS.format("ok")),
    ),
    Check(
        kernel=accepted_heartbeats,
        bad=given("", WANTS.format("ok")),
        bad_count=1,
        good=given("", WANTS.format("INVALID_REQUEST")),
        good_count=1,
        nothing=given("", BEATS.format("ok")),
    ),
    Check(
        kernel=ungated_requests,
        bad=given("", BEATS.format("ok"), node_settings=below("broker-1")),
        bad_count=1,
        good=given("", BEATS.format("ok"), node_settings=below("broker-2")),
        good_count=1,
        nothing=given("", BEATS.format("ok")),
    ),
    Check(
        kernel=timeouts_out_of_order,
        facts=ON_ZOOKEEPER,
        bad={**NEW, **side_by_side(2000)},
        bad_count=1,
        good={**NEW, **side_by_side(2001)},
        good_count=1,
        nothing={**NEW, "node_settings": SETTINGS},
    ),
    Check(
        kernel=inactive_leaders,
        facts=ON_ZOOKEEPER,
        bad={**NEW, **side_by_side(2001), "wire": wire(HEARD.replace("broker-1", "broker-3"))},
        bad_count=2,
        good={**NEW, **side_by_side(2001), "wire": wire(HEARD)},
        good_count=2,
        nothing={**NEW, "node_settings": SETTINGS, "wire": wire(HEARD)},
    ),
    *(
        Check(
            kernel=kernel,
            facts=ON_ZOOKEEPER,
            bad=hosts(bad),
            bad_count=1,
            good=hosts(good),
            good_count=1,
            nothing=hosts("1 topic t"),
        )
        for kernel, bad, good in (
            (wrong_ids, "1 keeps h1 1\n2 runs-on 2 h1", "1 keeps h1 1\n2 runs-on 1 h1"),
            (
                wrong_mappings,
                "1 runs-on 2 h1\n2 noop at 11000\n3 topic t at 11001",
                "1 runs-on 2 h1\n2 keeps h1 2\n3 topic t at 11001",
            ),
            (
                host_garbage,
                "1 runs-on 2 h1\n2 keeps g 2\n3 topic t at 90000",
                "1 runs-on 2 h1\n2 keeps g 2\n3 forgets g at 30000",
            ),
        )
    ),
)


ALL = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.kernel.__name__)


@ALL
def test_a_check_counts_what_it_judged(check: Check) -> None:
    bad = list(asked(check.kernel, check.bad, check.facts))
    good = list(asked(check.kernel, check.good, check.facts))
    assert never(bad)
    assert case_count(bad) == check.bad_count
    assert not never(good)
    assert case_count(good) == check.good_count
    assert not doubts(good)


@ALL
def test_a_check_that_can_judge_nothing_counts_nothing_and_doubts_nothing(check: Check) -> None:
    nothing = list(asked(check.kernel, check.nothing, check.facts))
    assert not case_count(nothing)
    assert not never(nothing)
    assert not doubts(nothing)


@ALL
def test_on_an_empty_tape_nothing_counts_of_what_needs_the_tape(check: Check) -> None:
    (name,) = _names(check)
    if "wire" in entry_of(name).needs:
        for some in (check.bad, check.good):
            untaped = {**some, "wire": wire(), "metadata_offsets": applied()}
            judged = list(asked(check.kernel, untaped, check.facts))
            assert not case_count(judged)
            assert not doubts(judged)


def test_every_check_of_the_cluster_is_among_these() -> None:
    told = {name for check in CHECKS for name in _names(check)}
    general = {check.entry.name for check in NODE_CHECKS}
    reads = {"isr-read-went-back", "stale-isr-read", "nonrepeatable-isr-read"}
    elsewhere = {*general, *reads, "unfenced-too-early"}
    elsewhere |= {"stuck-isr", "stuck-replica", "stuck-reassignment"}
    elsewhere |= {"wrong-group-offset", "input-not-once", "stuck-transactions", "fatal-error"}
    assert told == {
        check.entry.name for check in TABLE_CHECKS if check.split not in OF_KEYS
    } - elsewhere | {"acknowledged-below-min-isr", "deposed-leader-write"}


def _names(check: Check) -> set[str]:
    found = asked(check.kernel, check.bad, check.facts)
    return {name for _, one in found for name in one.table["check"].to_pylist()}


def test_each_change_of_office_is_a_case() -> None:
    thrice = claims(*DEPOSED, (4000, "controller-1", 3), (20_000, "controller-1", 3))
    assert case_count(asked(stale_controllers, given(PAIR, quorum_claims=thrice), THREE)) == 2
    again = claims((1000, "controller-1", 1), (60_000, "controller-1", 2))
    assert not case_count(asked(stale_controllers, given(PAIR, quorum_claims=again), THREE))


def test_where_the_leader_alone_is_enough_no_record_can_be_acknowledged_too_early() -> None:
    alone = given(TOO_SMALL.format(1, "1"), records=sent(3000), metadata_offsets=KNOWN)
    assert not case_count(asked(acknowledged_below_min_isr, alone, FACTS))


def test_a_join_beside_a_tape_with_other_frames_is_a_doubt() -> None:
    other = given(CAME_BACK, "at 300 broker-2 register -> ok 3 at 310")
    assert "is not on the tape" in doubts(asked(stale_epoch_joins, other, FACTS))["t-0"]
