"""Violations planted into the metadata log, in every copy of it."""

from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import Any, Final

from fencepost.checkers.control_plane.lost_metadata_write import written_value
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import (
    Row,
    change_one,
    edited,
    is_same,
    on_zookeeper,
    rows_of,
)

_CHANGE: Final = "PartitionChangeRecord"
_NOTHING: Final = "NoOpRecord"
_SOME_TIME_MS: Final = 5_000


def change_log(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    """Change a drawn record of the metadata log in every copy of it."""
    return change_one(
        run,
        draw,
        "metadata_log",
        ("snapshot", "metadata_offset", "type", "topic_id", "partition"),
        is_fit=lambda row: not row["snapshot"] and is_fit(row),
        news=news,
    )


def records_of(run: CopiedRun, *types: str) -> list[Row]:
    """Return the records of these types, without what snapshots have, by offset."""
    rows = run.table("metadata_log").to_pylist() if run.has("metadata_log") else []
    told = {
        (row["metadata_offset"], row["type"], row["topic_id"], row["partition"]): row
        for row in rows
        if row["type"] in types and not row["snapshot"]
    }
    return sorted(told.values(), key=lambda row: row["metadata_offset"])


def change_record(
    run: CopiedRun, draw: Random, rows: list[Row], news: Callable[[Row], Row]
) -> bool:
    """Change one of these records in every copy of it."""
    if not rows:
        return False
    found = draw.choice(rows)
    named = ("snapshot", "metadata_offset", "type", "topic_id", "partition")
    changed = news(found)
    return edited(
        run, "metadata_log", named, lambda row: changed if is_same(row, found, *named) else {}
    )


def epoch_back(run: CopiedRun, draw: Random) -> bool:
    """A partition's leader epoch went back, by the log."""
    return change_log(
        run,
        draw,
        lambda row: row["type"] == _CHANGE and (row["leader_epoch"] or 0) > 1,
        lambda row: {"leader_epoch": row["leader_epoch"] - 2},
    )


def version_skipped(run: CopiedRun, draw: Random) -> bool:
    """A partition's epoch went up by two, by the log."""
    return change_log(
        run,
        draw,
        lambda row: row["type"] == _CHANGE and row["partition_epoch"] is not None,
        lambda row: {"partition_epoch": row["partition_epoch"] + 1},
    )


def change_undone(run: CopiedRun, draw: Random) -> bool:
    """A leader was granted an ISR, and the log has nothing where that was decided."""
    granted = {
        (row["topic_id"], row["partition"], tuple(row["isr"] or ()))
        for row in (run.table("wire").to_pylist() if run.has("wire") else ())
        if row["api"] == "AlterPartition" and row["direction"] == "response" and row["isr"]
    }
    return change_log(
        run,
        draw,
        lambda row: (
            row["type"] == _CHANGE
            and row["controller_epoch"] >= 0
            and (row["topic_id"], row["partition"], tuple(row["isr"] or ())) in granted
        ),
        _emptied,
    )


def _emptied(row: Row) -> Row:
    """Return what makes a record one of no content."""
    fields = ("topic", "topic_id", "partition", "isr", "leader", "leader_epoch", "partition_epoch")
    return {"type": _NOTHING, **{name: None for name in fields if row[name] is not None}}


def isr_emptied(run: CopiedRun, draw: Random) -> bool:
    """The ISR of a partition is empty."""
    return change_log(
        run, draw, lambda row: row["type"] == _CHANGE and bool(row["isr"]), lambda _: {"isr": []}
    )


def member_put_out(run: CopiedRun, draw: Random) -> bool:
    """A controller that elected a leader put others out of the ISR who live."""
    asked = {
        (row["topic_id"], row["partition"], tuple(row["isr"]))
        for row in (run.table("wire").to_pylist() if run.has("wire") else ())
        if row["isr"]
    }

    def is_fit(row: Row) -> bool:
        isr = row["isr"] or ()
        own = row["type"] == _CHANGE and row["leader"] in isr and len(isr) > 1
        # Controllers on ZooKeeper write down no reasons.
        return (
            own
            and not on_zookeeper(run)
            and (row["topic_id"], row["partition"], tuple(isr)) not in asked
        )

    return change_log(run, draw, is_fit, lambda row: {"isr": [row["leader"]]})


def never_unfenced(run: CopiedRun, draw: Random) -> bool:
    """A broker was never unfenced, by the log, and yet it is let into ISRs and elected."""
    rows = [
        row
        for row in records_of(run, "BrokerRegistrationChangeRecord", "UnfenceBrokerRecord")
        if row["fenced"] is False and not on_zookeeper(run)
    ]
    return change_record(run, draw, rows, lambda _row: {"fenced": True})


def min_isr_raised(run: CopiedRun, draw: Random) -> bool:
    """A topic asks for more replicas in sync than any ISR had when records were acknowledged."""
    # On ZooKeeper, brokers do not say which settings they have applied.
    topics = set() if on_zookeeper(run) else _lacking(run)
    rows = [
        row
        for row in records_of(run, "ConfigRecord")
        if row["name"] == "min.insync.replicas" and row["topic"] in topics
    ]
    return change_record(run, draw, rows, lambda _row: {"value": "9"})


def _lacking(run: CopiedRun) -> set[str]:
    """Return the topics of clients of which an ISR lacked a replica for some time."""
    names = {row["topic_id"]: row["topic"] for row in records_of(run, "TopicRecord")}
    topics = {key.rpartition("-")[0] for key in run.manifest.keys}
    versions: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in records_of(run, "PartitionRecord", _CHANGE):
        if row["isr"]:
            versions[row["topic_id"], row["partition"]].append(
                (row["timestamp_ms"], len(row["isr"]))
            )
    found = set()
    for (topic_id, _), sizes in versions.items():
        whole = max(size for _, size in sizes)
        for (from_ms, size), (until_ms, _) in pairwise(sizes):
            if size < whole and until_ms - from_ms >= _SOME_TIME_MS:
                found.add(names.get(topic_id))
    return topics & found


def registered_twice(run: CopiedRun, draw: Random) -> bool:
    """Two registrations of brokers have one broker epoch."""
    rows = records_of(run, "RegisterBrokerRecord")
    return change_record(
        run, draw, rows[1:], lambda row: {"broker_epoch": _before(rows, row)["broker_epoch"]}
    )


def _before(rows: list[Row], row: Row) -> Row:
    return rows[rows.index(row) - 1]


def producer_ids_again(run: CopiedRun, draw: Random) -> bool:
    """A block of producer ids is given out a second time, by the log."""
    rows = records_of(run, "ProducerIdsRecord")
    return change_record(run, draw, rows[1:], lambda row: {"value": _before(rows, row)["value"]})


def id_again(run: CopiedRun, draw: Random) -> bool:
    """A topic is created with the id of an earlier one."""
    rows = records_of(run, "TopicRecord")
    return change_record(
        run, draw, rows[1:], lambda row: {"topic_id": _before(rows, row)["topic_id"]}
    )


def removal_undone(run: CopiedRun, draw: Random) -> bool:
    """The deletion of a topic was acknowledged, and the topic lives on in the log."""
    written = _acknowledged(run, "delete-topic")
    names = {row["topic_id"]: row["topic"] for row in records_of(run, "TopicRecord")}
    # On ZooKeeper the topic itself goes later.
    removal = "TopicDeletionRecord" if on_zookeeper(run) else "RemoveTopicRecord"
    rows = [
        row
        for row in records_of(run, removal)
        if (row["topic"] or names.get(row["topic_id"])) in written
    ]
    return change_record(run, draw, rows, _emptied)


def creation_undone(run: CopiedRun, draw: Random) -> bool:
    """A topic's setting was acknowledged, and the log never had it."""
    written = {
        (row["topic"], written_value(row))
        for row in rows_of(run, "metadata_writes")
        if (row["f"], row["outcome"]) == ("alter-config", "ok")
    }
    rows = [
        row for row in records_of(run, "ConfigRecord") if (row["topic"], row["value"]) in written
    ]
    return change_record(run, draw, rows, _emptied)


def _acknowledged(run: CopiedRun, f: str) -> set[str]:
    return {
        row["topic"]
        for row in rows_of(run, "metadata_writes")
        if (row["f"], row["outcome"]) == (f, "ok")
    }


def term_back(run: CopiedRun, draw: Random) -> bool:
    """The metadata log goes on in an older controller epoch."""
    rows = run.table("metadata_log").to_pylist() if run.has("metadata_log") else []
    epochs = [row["controller_epoch"] for row in rows if not row["snapshot"]]
    first, last = min(epochs, default=0), max(epochs, default=0)
    begun = min(
        (row["metadata_offset"] for row in rows if row["controller_epoch"] == last), default=0
    )
    return change_log(
        run,
        draw,
        lambda row: row["controller_epoch"] == last > first and row["metadata_offset"] > begun,
        lambda _: {"controller_epoch": first},
    )


def election_of_another(run: CopiedRun, draw: Random) -> bool:
    """Another controller was elected than the one that said so in that epoch."""
    rows: list[Row] = run.table("quorum_claims").to_pylist() if run.has("quorum_claims") else []
    claimed = {row["controller_epoch"] for row in rows}
    elections = records_of(run, "LeaderChangeMessage")
    others = {row["leader"] for row in elections}

    def another(row: Row) -> dict[str, Any]:
        return {"leader": draw.choice(sorted({*others, 99} - {row["leader"]}))}

    return change_record(
        run, draw, [row for row in elections if row["controller_epoch"] in claimed], another
    )
