"""Violations planted into the evidence of a stored run: each is one that a check has to call.

The run is valid as it is, so that what is told of it then is the plant's. A plant is made up in
all tables that would tell of it, as far as the table of one client or one node would: evidence
that contradicts itself is unknown, and that is an answer as well. A verdict of *valid* is a lie.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from harness.metamorphic.copied_run import CopiedRun
from harness.metamorphic.transformation import Transformation

__all__ = ["PLANTED"]

_Row = dict[str, Any]
_FAR: Final = 1_000_000
"""Added to offsets and values, it makes ones that a short run does not have."""
_SOME: Final = 20
"""As many records are lost where several are."""


def _edited(
    run: CopiedRun, name: str, columns: Sequence[str], edit: Callable[[_Row], Mapping[str, Any]]
) -> bool:
    """Change rows of a table: `edit` is given these columns of each, and returns what it has then.

    It is asked file by file, row by row, in their order.
    """

    def changed(rows: pa.Table) -> pa.Table:
        found = {
            place: news
            for place, row in enumerate(rows.select(list(columns)).to_pylist())
            if (news := edit(row))
        }
        for column in sorted({column for news in found.values() for column in news}):
            values = rows[column].to_pylist()
            for place, news in found.items():
                values[place] = news.get(column, values[place])
            at = rows.schema.get_field_index(column)
            field = rows.schema.field(column)
            rows = rows.set_column(at, field, pa.array(values, field.type))
        return rows

    return run.has(name) and run.change(name, changed)


def _without(
    run: CopiedRun, name: str, columns: Sequence[str], is_lost: Callable[[_Row], bool]
) -> bool:
    """Take rows of a table away."""

    def left(rows: pa.Table) -> pa.Table:
        told = rows.select(list(columns)).to_pylist()
        return rows.filter(pa.array([not is_lost(row) for row in told], pa.bool_()))

    return run.has(name) and run.change(name, left)


def _one(draw: Random, run: CopiedRun, name: str, is_fit: Callable[[_Row], bool]) -> _Row | None:
    """Draw a row of a table that fits; None if there is none."""
    rows = run.table(name).to_pylist() if run.has(name) else []
    fit = [row for row in rows if is_fit(row)]
    return draw.choice(fit) if fit else None


def _counted_anew(run: CopiedRun) -> None:
    """Let operations count the records that they have."""
    counts = run.table("records").group_by("operation").aggregate([("operation", "count")])
    columns = (counts[name].to_pylist() for name in ("operation", "operation_count"))
    known = dict(zip(*columns, strict=True))
    _edited(run, "operations", ("index",), lambda row: {"record_count": known.get(row["index"], 0)})


def _acknowledged(row: _Row) -> bool:
    return row["f"] == "send" and row["outcome"] == "ok" and row["offset"] is not None


def _is(row: _Row, other: _Row, *names: str) -> bool:
    return all(row[name] == other[name] for name in names)


_PLACE: Final = ("operation", "position")


def _lost(run: CopiedRun, draw: Random) -> bool:
    """An acknowledged record is nowhere: what is there has another value."""
    sent = _one(draw, run, "records", _acknowledged)
    if sent is None:
        return False
    other = {"value": sent["value"] + _FAR}
    return _edited(run, "records", _PLACE, lambda row: other if _is(row, sent, *_PLACE) else {})


def _twice(run: CopiedRun, draw: Random) -> bool:
    """All replicas have a record twice, under one producer epoch, and clients read it twice."""
    sent = _one(draw, run, "records", _acknowledged)
    if sent is None or not run.has("replica_records"):
        return False
    key, at, names = (
        sent["key"],
        sent["offset"],
        ("value", "producer_id", "producer_epoch", "digest"),
    )
    logs = {
        (row["node"], row["offset"]): row
        for row in run.table("replica_records")
        .filter(pc.equal(run.table("replica_records")["key"], key))
        .to_pylist()
    }

    def again(row: _Row) -> Mapping[str, Any]:
        first = logs.get((row["node"], at))
        is_next = row["key"] == key and row["offset"] == at + 1 and first is not None
        return {name: first[name] for name in names} if is_next and first is not None else {}

    def read(row: _Row) -> Mapping[str, Any]:
        is_read = row["f"] != "send" and row["key"] == key and row["offset"] == at + 1
        return {"value": sent["value"]} if is_read else {}

    _edited(run, "records", ("f", "key", "offset"), read)
    return _edited(run, "replica_records", ("key", "node", "offset"), again)


def _key_unrecorded(run: CopiedRun, draw: Random) -> bool:
    """No client has told anything of a key, whose replicas are full."""
    sent = _one(draw, run, "records", _acknowledged)
    if sent is None:
        return False
    _without(run, "records", ("key",), lambda row: row["key"] == sent["key"])
    _counted_anew(run)
    return True


def _sends_without_record(run: CopiedRun, draw: Random) -> bool:
    """Half of a producer's acknowledged sends have no record."""
    sent = _one(draw, run, "records", _acknowledged)
    if sent is None:
        return False
    named = ("f", "process", "operation")
    _without(
        run,
        "records",
        named,
        lambda row: _is(row, sent, "f", "process") and row["operation"] % 2 == 0,
    )
    _counted_anew(run)
    return True


def _offset_elsewhere(run: CopiedRun, draw: Random) -> bool:
    """A send was acknowledged at an offset at which another record lies."""
    sent = _one(draw, run, "records", lambda row: _acknowledged(row) and row["offset"] > 0)
    if sent is None:
        return False
    other = {"offset": sent["offset"] - 1}
    return _edited(run, "records", _PLACE, lambda row: other if _is(row, sent, *_PLACE) else {})


def _read_unsent(run: CopiedRun, draw: Random) -> bool:
    """A consumer read a value that nobody sent."""
    polled = _one(draw, run, "records", lambda row: row["f"] == "poll")
    if polled is None:
        return False
    other = {"value": polled["value"] + _FAR}
    return _edited(run, "records", _PLACE, lambda row: other if _is(row, polled, *_PLACE) else {})


def _polled_back(run: CopiedRun, draw: Random) -> bool:
    """A poll returned two records of a key in the wrong order."""
    rows = run.table("records").to_pylist()
    polls = sorted(
        (row for row in rows if row["f"] == "poll"),
        key=lambda row: (row["operation"], row["key"], row["position"]),
    )
    pairs = [
        (one, two)
        for one, two in pairwise(polls)
        if _is(one, two, "operation", "key") and two["offset"] > one["offset"]
    ]
    if not pairs:
        return False
    one, two = draw.choice(pairs)
    swapped = {
        (row["operation"], row["position"]): {"offset": other["offset"], "value": other["value"]}
        for row, other in ((one, two), (two, one))
    }
    return _edited(
        run, "records", _PLACE, lambda row: swapped.get((row["operation"], row["position"]), {})
    )


def _poll_skipped(run: CopiedRun, draw: Random) -> bool:
    """A consumer never got the records of one poll, and went on behind them."""
    polled = _one(draw, run, "records", lambda row: row["f"] == "poll" and row["offset"] > 0)
    if polled is None:
        return False
    named = ("f", "process", "key", "offset")
    _without(
        run,
        "records",
        named,
        lambda row: (
            _is(row, polled, "f", "process", "key")
            and 0 <= row["offset"] - polled["offset"] < _SOME
        ),
    )
    _counted_anew(run)
    return True


def _replica_record(run: CopiedRun, draw: Random) -> _Row | None:
    """Draw a record that another replica has as well."""
    rows = run.table("replica_records").to_pylist() if run.has("replica_records") else []
    ends: dict[tuple[str, str], int] = {}
    for row in rows:
        place = (row["key"], row["node"])
        ends[place] = max(ends.get(place, -1), row["offset"])
    inner = [
        row
        for row in rows
        if not row["control"]
        and 0 < row["offset"] < min(end for (key, _), end in ends.items() if key == row["key"])
    ]
    return draw.choice(inner) if inner else None


def _replica_diverges(run: CopiedRun, draw: Random) -> bool:
    """One replica has another record at an offset than the others."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    other = {"value": (found["value"] or 0) + _FAR, "digest": found["digest"] ^ 1}
    named = ("key", "node", "offset")
    return _edited(
        run, "replica_records", named, lambda row: other if _is(row, found, *named) else {}
    )


def _replica_hole(run: CopiedRun, draw: Random) -> bool:
    """One replica lacks a record in the middle of its log."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    named = ("key", "node", "offset")
    _without(run, "replica_records", named, lambda row: _is(row, found, *named))
    return _edited(
        run,
        "replicas",
        ("key", "node", "record_count"),
        lambda row: (
            {"record_count": row["record_count"] - 1} if _is(row, found, "key", "node") else {}
        ),
    )


def _all_replicas_short(run: CopiedRun, draw: Random) -> bool:
    """Every replica of a key ends before its last twenty records."""
    found = _replica_record(run, draw)
    if found is None:
        return False
    rows = [row for row in run.table("replicas").to_pylist() if row["key"] == found["key"]]
    end = max(row["log_end_offset"] for row in rows) - _SOME
    if end <= 0:
        return False
    lost: dict[str, int] = {}

    def is_lost(row: _Row) -> bool:
        gone = bool(row["key"] == found["key"] and row["offset"] >= end)
        lost[row["node"]] = lost.get(row["node"], 0) + gone
        return gone

    _without(run, "replica_records", ("key", "node", "offset"), is_lost)

    def shorter(row: _Row) -> Mapping[str, Any]:
        if row["key"] != found["key"]:
            return {}
        return {
            "log_end_offset": min(row["log_end_offset"], end),
            "high_watermark": None
            if row["high_watermark"] is None
            else min(row["high_watermark"], end),
            "record_count": row["record_count"] - lost.get(row["node"], 0),
        }

    return _edited(
        run,
        "replicas",
        ("key", "node", "log_end_offset", "high_watermark", "record_count"),
        shorter,
    )


def _shown(draw: Random, run: CopiedRun, is_fit: Callable[[_Row], bool]) -> _Row | None:
    """Draw a row of what a broker showed before the end, after which no log tells what was so."""
    until_ns = run.manifest.healed_ns or 0
    return _one(
        draw,
        run,
        "describes",
        lambda row: (
            row["error"] in (None, "NONE")
            and (row["return_ns"] or until_ns) < until_ns
            and is_fit(row)
        ),
    )


def _isr_never_was(run: CopiedRun, draw: Random) -> bool:
    """A broker showed an ISR that its partition never had under that leader epoch."""
    shown = _shown(draw, run, lambda row: len(row["isr"] or ()) > 1)
    if shown is None:
        return False
    named = ("read", "topic", "partition")
    other = {"isr": [*shown["isr"], 99]}
    return _edited(run, "describes", named, lambda row: other if _is(row, shown, *named) else {})


def _leader_epoch_ahead(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a leader epoch that its partition never had."""
    shown = _shown(draw, run, lambda row: row["leader_epoch"] is not None)
    if shown is None:
        return False
    named = ("read", "topic", "partition")
    other = {"leader_epoch": shown["leader_epoch"] + 1000}
    return _edited(run, "describes", named, lambda row: other if _is(row, shown, *named) else {})


def _setting_unwritten(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a setting that nobody wrote."""
    shown = _shown(draw, run, lambda row: bool(row["config_value"]))
    if shown is None:
        return False
    other = {"config_value": type(shown["config_value"])(987_654)}
    named = ("read", "topic", "partition")
    return _edited(run, "describes", named, lambda row: other if _is(row, shown, *named) else {})


def _old_member(run: CopiedRun, draw: Random) -> bool:
    """A leader that was granted an ISR named an older broker epoch for a member that joined."""
    asked = _one(
        draw,
        run,
        "wire",
        lambda row: (
            row["api"] == "AlterPartition"
            and row["direction"] == "request"
            and any(epoch > 0 for epoch in row["isr_epochs"] or ())
        ),
    )
    if asked is None:
        return False
    older = {"isr_epochs": [max(0, epoch - 1) for epoch in asked["isr_epochs"]]}
    named = ("frame", "item")
    return _edited(run, "wire", named, lambda row: older if _is(row, asked, *named) else {})


def _isr_unasked(run: CopiedRun, draw: Random) -> bool:
    """The request that an ISR was granted to had asked for another one."""
    rows = run.table("wire").to_pylist() if run.has("wire") else []
    granted = {
        (row["connection"], row["correlation_id"], row["topic_id"], row["partition"])
        for row in rows
        if row["api"] == "AlterPartition"
        and row["direction"] == "response"
        and row["error"] in (None, "NONE")
    }
    asked = _one(
        draw,
        run,
        "wire",
        lambda row: (
            row["api"] == "AlterPartition"
            and row["direction"] == "request"
            and len(row["isr"] or ()) > 1
            and (row["connection"], row["correlation_id"], row["topic_id"], row["partition"])
            in granted
        ),
    )
    if asked is None:
        return False
    named = ("frame", "item")
    fewer: dict[str, Any] = {"isr": [asked["broker_id"]]}
    if asked["isr_epochs"]:
        fewer["isr_epochs"] = [asked["broker_epoch"]]
    return _edited(run, "wire", named, lambda row: fewer if _is(row, asked, *named) else {})


def _lowest_ahead(run: CopiedRun, draw: Random) -> bool:
    """A controller said that all had applied more than some had."""
    told = _one(
        draw,
        run,
        "wire",
        lambda row: (
            (row["lowest_acknowledged_offset"] or -1) > 0 and row["direction"] == "response"
        ),
    )
    if told is None:
        return False
    named = ("frame", "item")
    more = {"lowest_acknowledged_offset": told["lowest_acknowledged_offset"] + 1000}
    return _edited(run, "wire", named, lambda row: more if _is(row, told, *named) else {})


def _in_log(
    run: CopiedRun, draw: Random, is_fit: Callable[[_Row], bool], news: Callable[[_Row], _Row]
) -> bool:
    """Change a record of the metadata log in every copy of it."""
    found = _one(draw, run, "metadata_log", lambda row: not row["snapshot"] and is_fit(row))
    if found is None:
        return False
    named, changed = ("snapshot", "metadata_offset", "type"), news(found)
    return _edited(
        run, "metadata_log", named, lambda row: changed if _is(row, found, *named) else {}
    )


def _is_change_of_isr(row: _Row) -> bool:
    return row["type"] == "PartitionChangeRecord" and bool(row["isr"])


def _no_replica_in_isr(run: CopiedRun, draw: Random) -> bool:
    """The ISR has a broker that is no replica."""
    return _in_log(run, draw, _is_change_of_isr, lambda row: {"isr": [*row["isr"], 99]})


def _leader_outside_isr(run: CopiedRun, draw: Random) -> bool:
    """A broker that is not in the ISR leads."""
    return _in_log(run, draw, _is_change_of_isr, lambda _: {"leader": 99})


def _broker_epoch_back(run: CopiedRun, draw: Random) -> bool:
    """A broker registers with an epoch that it had before."""
    return _in_log(
        run,
        draw,
        lambda row: row["type"] == "RegisterBrokerRecord" and row["metadata_offset"] > _SOME,
        lambda _: {"broker_epoch": 0},
    )


def _nodes_disagree(run: CopiedRun, draw: Random) -> bool:
    """One node's metadata log has another record at an offset."""
    nodes = (
        {row["node"] for row in run.table("metadata_log").to_pylist()}
        if run.has("metadata_log")
        else set()
    )
    found = _one(draw, run, "metadata_log", lambda row: not row["snapshot"] and not row["control"])
    if found is None or len(nodes) < 2:  # noqa: PLR2004  # one cannot disagree
        return False
    named = ("node", "snapshot", "metadata_offset")
    other = {"digest": found["digest"] ^ 1}
    return _edited(run, "metadata_log", named, lambda row: other if _is(row, found, *named) else {})


def _old_claim(run: CopiedRun, draw: Random) -> bool:
    """A controller that was deposed claims its office again."""
    del draw
    rows = run.table("quorum_claims").to_pylist() if run.has("quorum_claims") else []
    epochs = sorted({row["controller_epoch"] for row in rows})
    last = [row for row in rows if row["controller_epoch"] == epochs[-1]] if len(epochs) > 1 else []
    if not last:
        return False
    late = last[-1]
    named = ("time_ns", "node")
    other = {"controller_epoch": epochs[0]}
    return _edited(run, "quorum_claims", named, lambda row: other if _is(row, late, *named) else {})


def _topic_uncreated(run: CopiedRun, draw: Random) -> bool:
    """The creation of a topic was acknowledged, and the metadata log never had it."""
    made = _one(
        draw,
        run,
        "metadata_writes",
        lambda row: row["f"] == "create-topic" and row["outcome"] == "ok" and bool(row["topic_id"]),
    )
    if made is None:
        return False
    other = {"topic_id": made["topic_id"][::-1]}
    return _edited(
        run, "metadata_writes", ("index",), lambda row: other if _is(row, made, "index") else {}
    )


def _move_undone(run: CopiedRun, draw: Random) -> bool:
    """A reassignment was acknowledged, and the metadata log never had it."""
    moved = _one(
        draw,
        run,
        "partition_writes",
        lambda row: row["f"] == "reassign" and row["outcome"] == "ok" and bool(row["replicas"]),
    )
    if moved is None:
        return False
    other = {"replicas": [*moved["replicas"], 99]}
    return _edited(
        run, "partition_writes", ("index",), lambda row: other if _is(row, moved, "index") else {}
    )


def _returned_before_call(run: CopiedRun, draw: Random) -> bool:
    """An operation returned before it was called."""
    done = _one(draw, run, "operations", lambda row: row["return_ns"] is not None)
    if done is None:
        return False
    other = {"return_ns": done["call_ns"] - 1_000_000}
    return _edited(
        run, "operations", ("index",), lambda row: other if _is(row, done, "index") else {}
    )


def _harness_failed(run: CopiedRun, draw: Random) -> bool:
    """The harness failed in the middle of the run."""
    del draw
    run.state(failure="the harness crashed")
    return True


def _table_gone(run: CopiedRun, draw: Random, *, name: str) -> bool:
    """A table that was recorded is not there."""
    del draw
    if not run.has(name) or name not in (*run.manifest.recorded, "faults"):
        return False
    run.run.table_path(name).unlink()
    return True


def _rows_gone(run: CopiedRun, draw: Random, *, name: str) -> bool:
    """A table that was recorded has no rows."""
    del draw
    return run.has(name) and run.change(name, lambda rows: rows.slice(0, 0))


def _plant(
    name: str, change: Callable[[CopiedRun, Random], bool], *called: str, title: str = ""
) -> Transformation:
    """Return a plant that one of these checks has to call; of several, any."""
    words = title or (change.__doc__ or "").strip().rstrip(".")
    return Transformation(
        name=name, title=words[0].lower() + words[1:], change=change, is_plant=True, called=called
    )


PLANTED: Final = (
    _plant("acknowledged-lost", _lost, "lost-write", "unseen"),
    _plant("logged-twice", _twice, "duplicate"),
    _plant("key-unrecorded", _key_unrecorded),
    _plant("sends-without-record", _sends_without_record),
    _plant("offset-elsewhere", _offset_elsewhere, "inconsistent-offset"),
    _plant("read-unsent", _read_unsent, "vanished", "inconsistent-offset"),
    _plant("polled-back", _polled_back, "internal-nonmonotonic-poll"),
    _plant("poll-skipped", _poll_skipped, "skipped-poll", "internal-skipped-poll"),
    _plant("replica-diverges", _replica_diverges, "divergent-replicas"),
    _plant("replica-hole", _replica_hole, "divergent-replicas"),
    _plant(
        "all-replicas-short",
        _all_replicas_short,
        "lost-write",
        "vanished",
        "truncated-below-high-watermark",
    ),
    _plant("isr-never-was", _isr_never_was, "nonlinearizable-isr"),
    _plant("leader-epoch-ahead", _leader_epoch_ahead, "nonlinearizable-isr", "epoch-went-back"),
    _plant("setting-unwritten", _setting_unwritten),
    _plant("old-member", _old_member, "stale-epoch-join", "epoch-check-bypassed"),
    _plant("isr-unasked", _isr_unasked, "unasked-change", "nonlinearizable-isr"),
    _plant("lowest-ahead", _lowest_ahead, "false-lowest-acknowledged-offset"),
    _plant("nodes-disagree", _nodes_disagree, "metadata-divergence"),
    _plant("no-replica-in-isr", _no_replica_in_isr, "isr-not-in-replicas"),
    _plant("leader-outside-isr", _leader_outside_isr, "illegal-transition", "two-leaders"),
    _plant("broker-epoch-back", _broker_epoch_back, "illegal-transition", "incarnation-went-back"),
    _plant("old-claim", _old_claim, "stale-controller"),
    _plant("topic-uncreated", _topic_uncreated, "metadata-divergence", "lost-metadata-write"),
    _plant("move-undone", _move_undone, "lost-reassignment"),
    _plant("returned-before-call", _returned_before_call),
    _plant("harness-failed", _harness_failed),
    *(
        _plant(f"{name}-gone", partial(_table_gone, name=name), title=f"`{name}` is not there")
        for name in ("faults", "wire", "partition_writes")
    ),
    *(
        _plant(f"{name}-empty", partial(_rows_gone, name=name), title=f"`{name}` has no rows")
        for name in ("operations", "replicas", "metadata_log", "describes", "metadata_writes")
    ),
)
"""All of them, in the order in which they are told. One without a check is to be unknown."""
