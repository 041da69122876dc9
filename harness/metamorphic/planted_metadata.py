"""Violations planted into what is told of metadata: by brokers, on the tape, in the logs."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any, Final

from fencepost.checkers.metadata.client_answers import CLIENTS, DATA_APIS
from fencepost.checkers.metadata.sessions import session_timeouts_ns
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import (
    SOME,
    Row,
    change_one,
    change_shown,
    edited,
    is_same,
)
from fencepost.history.counter import counter_of

_READ: Final = ("read", "topic", "partition")
_FRAME: Final = ("frame", "item")
_PARTITION: Final = ("topic_id", "partition")
_PLACED: Final = ("replicas", "adding", "removing")
_SOON_NS: Final = 1_000_000_000
_CONTACTS: Final = ("BrokerHeartbeat", "BrokerRegistration")
_ASKED_MIN: Final = 4
"""The first answer of a broker that wakes up proves nothing."""
_UNCLEAN: Final = "unclean.leader.election.enable"


def isr_never_was(run: CopiedRun, draw: Random) -> bool:
    """A broker showed an ISR that its partition never had under that leader epoch."""
    return change_shown(
        run, draw, lambda row: bool(row["isr"]), lambda row: {"isr": [*row["isr"], 99]}
    )


def leader_epoch_ahead(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a leader epoch that its partition never had."""
    return change_shown(
        run,
        draw,
        lambda row: row["leader_epoch"] is not None,
        lambda row: {"leader_epoch": row["leader_epoch"] + 1000},
    )


def setting_unwritten(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a setting that was never written."""
    return change_shown(
        run,
        draw,
        lambda row: bool(row["config_value"]),
        lambda row: {"config_value": type(row["config_value"])(987_654)},
    )


def _shows_id(row: Row) -> bool:
    return row["topic_id"] is not None and row["partition"] is not None


def id_unmade(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a topic with an id that was never made."""
    return change_shown(run, draw, _shows_id, lambda row: {"topic_id": row["topic_id"][::-1]})


def id_of_another(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a topic with the id of another one."""
    rows = run.table("describes").to_pylist() if run.has("describes") else []
    other = {row["topic"]: row["topic_id"] for row in rows if _shows_id(row)}
    names = sorted(other)
    following = dict(zip(names, [*names[1:], *names[:1]], strict=True))
    return change_shown(
        run,
        draw,
        lambda row: _shows_id(row) and len(names) > 1,
        lambda row: {"topic_id": other[following[row["topic"]]]},
    )


def id_of_the_dead(run: CopiedRun, draw: Random) -> bool:
    """A broker that had shown the successor of a topic showed the dead one again."""
    rows = run.table("describes").to_pylist() if run.has("describes") else []
    earliest: dict[str, str] = {}
    shown: dict[tuple[str, str], Row] = {}
    again: set[tuple[int, str]] = set()
    for row in sorted(filter(_shows_id, rows), key=lambda row: row["return_ns"]):
        first = earliest.setdefault(row["topic"], row["topic_id"])
        before = shown.get((row["node"], row["topic"]))
        if before is not None and before["topic_id"] == row["topic_id"] != first:
            # So soon afterwards that it is no other incarnation, which may be behind.
            is_soon = 0 < row["call_ns"] - before["return_ns"] < _SOON_NS
            again |= {(row["read"], row["topic"])} if is_soon else set()
        shown[row["node"], row["topic"]] = row
    return change_shown(
        run,
        draw,
        lambda row: _shows_id(row) and (row["read"], row["topic"]) in again,
        lambda row: {"topic_id": earliest[row["topic"]]},
    )


def _is_asked(row: Row, *apis: str) -> bool:
    return row["api"] in (apis or ("AlterPartition",)) and row["direction"] == "request"


def old_member(run: CopiedRun, draw: Random) -> bool:
    """A leader that was granted an ISR named an older broker epoch for a member that joined."""
    return change_one(
        run,
        draw,
        "wire",
        _FRAME,
        is_fit=lambda row: _is_asked(row) and any(one > 0 for one in row["isr_epochs"] or ()),
        news=lambda row: {"isr_epochs": [max(0, one - 1) for one in row["isr_epochs"]]},
    )


def isr_unasked(run: CopiedRun, draw: Random) -> bool:
    """The request that an ISR was granted to had asked for another one."""
    apis = ("AlterPartition", "IsrChange")

    def place(row: Row) -> tuple[Any, ...]:
        # The answer to an IsrChange names no partitions, and has them in the request's order.
        named = ("item",) if row["api"] == "IsrChange" else ("topic_id", "partition")
        return tuple(row[name] for name in ("connection", "correlation_id", *named))

    granted = {
        place(row)
        for row in (run.table("wire").to_pylist() if run.has("wire") else ())
        if row["api"] in apis and row["direction"] == "response" and row["error"] in (None, "NONE")
    }

    def is_fit(row: Row) -> bool:
        return _is_asked(row, *apis) and place(row) in granted and len(row["isr"] or ()) > 1

    def fewer(row: Row) -> Row:
        alone: Row = {"isr": [row["broker_id"]]}
        return alone | ({"isr_epochs": [row["broker_epoch"]]} if row["isr_epochs"] else {})

    return change_one(run, draw, "wire", _FRAME, is_fit=is_fit, news=fewer)


def _serves_a_client(row: Row) -> bool:
    is_answer = row["direction"] == "response" and row["error"] == "NONE"
    return is_answer and row["source"] == CLIENTS and row["api"] in DATA_APIS


def fenced_served(run: CopiedRun, draw: Random) -> bool:
    """A broker answered clients that asked for data while no heartbeat of it had been answered."""
    if not (run.has("wire") and run.has("node_settings") and run.manifest.promises.leases):
        return False
    leases_ns = session_timeouts_ns(run.table("node_settings"))
    rows = run.table("wire").to_pylist() if leases_ns else []
    beats = [row for row in rows if row["api"] in _CONTACTS]
    gaps: list[tuple[str, int, int]] = []
    for node in sorted({row["source"] for row in beats}):
        times_ns = sorted(row["time_ns"] for row in beats if row["source"] == node)
        gaps += [(node, one, two) for one, two in pairwise(times_ns)]
    over_ns = 2 * max(leases_ns.values(), default=0)
    data = [row for row in rows if _serves_a_client(row)]
    fit = []
    for node, begin_ns, end_ns in gaps:
        between = {
            (row["connection"], row["correlation_id"])
            for row in data
            if begin_ns + over_ns < row["time_ns"] < end_ns
        }
        if len(between) >= _ASKED_MIN:
            fit.append((node, between))
    if not fit:
        return False
    node, between = draw.choice(fit)
    named = ("connection", "correlation_id", "source", "api")

    def led_elsewhere(row: Row) -> Row:
        own = (row["connection"], row["correlation_id"]) in between
        return {"target": node} if own and row["source"] == CLIENTS else {}

    return edited(run, "wire", named, led_elsewhere)


def lowest_ahead(run: CopiedRun, draw: Random) -> bool:
    """A controller said that all had applied more than some had."""
    column = "lowest_acknowledged_offset"
    return change_one(
        run,
        draw,
        "wire",
        _FRAME,
        is_fit=lambda row: (row[column] or -1) > 0 and row["direction"] == "response",
        news=lambda row: {column: row[column] + 1000},
    )


def _change_log(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    """Change a record of the metadata log in every copy of it."""
    return change_one(
        run,
        draw,
        "metadata_log",
        ("snapshot", "metadata_offset", "type"),
        is_fit=lambda row: not row["snapshot"] and is_fit(row),
        news=news,
    )


def _is_change_of_isr(row: Row) -> bool:
    return row["type"] == "PartitionChangeRecord" and bool(row["isr"])


def no_replica_in_isr(run: CopiedRun, draw: Random) -> bool:
    """The ISR has a broker that is no replica."""
    return _change_log(run, draw, _is_change_of_isr, lambda row: {"isr": [*row["isr"], 99]})


def leader_outside_isr(run: CopiedRun, draw: Random) -> bool:
    """A broker that is not in the ISR leads."""
    return _change_log(run, draw, _is_change_of_isr, lambda _: {"leader": 99})


def setting_unasked(run: CopiedRun, draw: Random) -> bool:
    """A topic was set to elect leaders uncleanly, without a request."""
    # A value that is far above the first one comes with no creation.
    half_ns = (run.manifest.healed_ns or 0) // 2

    def is_fit(row: Row) -> bool:
        is_early = row["timestamp_ms"] * 1_000_000 - run.manifest.origin_utc_ns < half_ns
        changed = row["type"] == "ConfigRecord" and (counter_of(row["value"]) or 0) > 0
        return is_early and changed

    return _change_log(run, draw, is_fit, lambda _: {"name": _UNCLEAN, "value": "true"})


def broker_epoch_back(run: CopiedRun, draw: Random) -> bool:
    """A broker registers with an epoch that it had before."""
    return _change_log(
        run,
        draw,
        lambda row: row["type"] == "RegisterBrokerRecord" and row["metadata_offset"] > SOME,
        lambda _: {"broker_epoch": 0},
    )


def nodes_disagree(run: CopiedRun, draw: Random) -> bool:
    """One node's metadata log has another record at an offset."""
    if not run.has("metadata_log") or len(run.table("metadata_log")["node"].unique()) == 1:
        return False
    return change_one(
        run,
        draw,
        "metadata_log",
        ("node", "snapshot", "metadata_offset"),
        is_fit=lambda row: not row["snapshot"] and not row["control"],
        news=lambda row: {"digest": row["digest"] ^ 1},
    )


def old_claim(run: CopiedRun, draw: Random) -> bool:
    """A controller that was deposed claims its office again."""
    rows = run.table("quorum_claims").to_pylist() if run.has("quorum_claims") else []
    last = max(rows, key=lambda row: row["time_ns"], default=None)
    first_epoch = min((row["controller_epoch"] for row in rows), default=0)
    return change_one(
        run,
        draw,
        "quorum_claims",
        ("time_ns", "node"),
        is_fit=lambda row: row == last and row["controller_epoch"] > first_epoch,
        news=lambda _: {"controller_epoch": first_epoch},
    )


def topic_uncreated(run: CopiedRun, draw: Random) -> bool:
    """The creation of a topic was acknowledged, and the metadata log never had it."""
    return change_one(
        run,
        draw,
        "metadata_writes",
        ("index",),
        is_fit=lambda row: _is_done(row, "create-topic") and bool(row["topic_id"]),
        news=lambda row: {"topic_id": row["topic_id"][::-1]},
    )


def move_undone(run: CopiedRun, draw: Random) -> bool:
    """A reassignment was acknowledged, and the metadata log never had it."""
    return change_one(
        run,
        draw,
        "partition_writes",
        ("index",),
        is_fit=lambda row: _is_done(row, "reassign") and bool(row["replicas"]),
        news=lambda row: {"replicas": [*row["replicas"], 99]},
    )


def move_endless(run: CopiedRun, draw: Random) -> bool:
    """A move of replicas that was acknowledged never ended, and nothing was broken for long."""
    rows = run.table("metadata_log").to_pylist() if run.has("metadata_log") else []
    ends = list(_quiet_ends(run, rows))
    if not ends:
        return False
    moving, end = draw.choice(ends)

    def still(row: Row) -> Row:
        later = is_same(row, end, *_PARTITION) and row["metadata_offset"] >= end["metadata_offset"]
        columns = [name for name in _PLACED if later and row[name] is not None]
        return {name: moving[name] for name in columns}

    return edited(run, "metadata_log", (*_PARTITION, "metadata_offset", *_PLACED), still)


def _quiet_ends(run: CopiedRun, rows: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Yield the last record of each move, and that of its end, after which nothing happens."""
    manifest = run.manifest
    faults = [
        (row["begin_ns"], row["end_ns"] or manifest.end_ns or 0)
        for row in run.table("faults").to_pylist()
    ]
    moving: dict[tuple[Any, ...], Row] = {}
    for place, row in enumerate(rows):
        of = (row["node"], row["topic_id"], row["partition"])
        if row["partition"] is None or row["snapshot"] or row["adding"] is None is row["removing"]:
            continue
        if row["adding"] or row["removing"]:
            moving[of] = row
        elif (begun := moving.pop(of, None)) is not None:
            from_ns = row["timestamp_ms"] * 1_000_000 - manifest.origin_utc_ns
            until_ns = from_ns + round((manifest.stuck_isr_limit_s + 3) * 1e9)
            stirs = (
                one["timestamp_ms"] * 1_000_000 - manifest.origin_utc_ns
                for one in rows[place + 1 :]
                if one["node"] == row["node"]
                and one["metadata_offset"] > row["metadata_offset"]
                and one["type"] not in ("NoOpRecord", "ConfigRecord")
            )
            broken = any(begin < until_ns and end > from_ns for begin, end in faults)
            last_ns = min((manifest.end_ns or 0, *stirs))
            if not broken and last_ns > until_ns:
                yield begun, row


def _is_done(row: Row, f: str) -> bool:
    return (row["f"], row["outcome"]) == (f, "ok")
