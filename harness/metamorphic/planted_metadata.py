"""Violations planted into what is told of metadata: by brokers, on the tape, in the logs."""

from collections.abc import Callable
from random import Random
from typing import Any

from harness.metamorphic.copied_run import CopiedRun
from harness.metamorphic.planted_rows import SOME, Row, drawn_row, edited, is_same

__all__ = [
    "broker_epoch_back",
    "isr_never_was",
    "isr_unasked",
    "leader_epoch_ahead",
    "leader_outside_isr",
    "lowest_ahead",
    "move_undone",
    "no_replica_in_isr",
    "nodes_disagree",
    "old_claim",
    "old_member",
    "setting_unwritten",
    "topic_uncreated",
]


def _shown(draw: Random, run: CopiedRun, is_fit: Callable[[Row], bool]) -> Row | None:
    """Draw a row of what a broker showed before the end, after which no log tells what was so."""
    until_ns = run.manifest.healed_ns or 0
    return drawn_row(
        draw,
        run,
        "describes",
        lambda row: (
            row["error"] in (None, "NONE")
            and (row["return_ns"] or until_ns) < until_ns
            and is_fit(row)
        ),
    )


def isr_never_was(run: CopiedRun, draw: Random) -> bool:
    """A broker showed an ISR that its partition never had under that leader epoch."""
    shown = _shown(draw, run, lambda row: len(row["isr"] or ()) > 1)
    if shown is None:
        return False
    named = ("read", "topic", "partition")
    other = {"isr": [*shown["isr"], 99]}
    return edited(run, "describes", named, lambda row: other if is_same(row, shown, *named) else {})


def leader_epoch_ahead(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a leader epoch that its partition never had."""
    shown = _shown(draw, run, lambda row: row["leader_epoch"] is not None)
    if shown is None:
        return False
    named = ("read", "topic", "partition")
    other = {"leader_epoch": shown["leader_epoch"] + 1000}
    return edited(run, "describes", named, lambda row: other if is_same(row, shown, *named) else {})


def setting_unwritten(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a setting that nobody wrote."""
    shown = _shown(draw, run, lambda row: bool(row["config_value"]))
    if shown is None:
        return False
    other = {"config_value": type(shown["config_value"])(987_654)}
    named = ("read", "topic", "partition")
    return edited(run, "describes", named, lambda row: other if is_same(row, shown, *named) else {})


def old_member(run: CopiedRun, draw: Random) -> bool:
    """A leader that was granted an ISR named an older broker epoch for a member that joined."""
    asked = drawn_row(
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
    return edited(run, "wire", named, lambda row: older if is_same(row, asked, *named) else {})


def isr_unasked(run: CopiedRun, draw: Random) -> bool:
    """The request that an ISR was granted to had asked for another one."""
    rows = run.table("wire").to_pylist() if run.has("wire") else []
    granted = {
        (row["connection"], row["correlation_id"], row["topic_id"], row["partition"])
        for row in rows
        if row["api"] == "AlterPartition"
        and row["direction"] == "response"
        and row["error"] in (None, "NONE")
    }
    asked = drawn_row(
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
    return edited(run, "wire", named, lambda row: fewer if is_same(row, asked, *named) else {})


def lowest_ahead(run: CopiedRun, draw: Random) -> bool:
    """A controller said that all had applied more than some had."""
    told = drawn_row(
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
    return edited(run, "wire", named, lambda row: more if is_same(row, told, *named) else {})


def _in_log(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    """Change a record of the metadata log in every copy of it."""
    found = drawn_row(draw, run, "metadata_log", lambda row: not row["snapshot"] and is_fit(row))
    if found is None:
        return False
    named, changed = ("snapshot", "metadata_offset", "type"), news(found)
    return edited(
        run, "metadata_log", named, lambda row: changed if is_same(row, found, *named) else {}
    )


def _is_change_of_isr(row: Row) -> bool:
    return row["type"] == "PartitionChangeRecord" and bool(row["isr"])


def no_replica_in_isr(run: CopiedRun, draw: Random) -> bool:
    """The ISR has a broker that is no replica."""
    return _in_log(run, draw, _is_change_of_isr, lambda row: {"isr": [*row["isr"], 99]})


def leader_outside_isr(run: CopiedRun, draw: Random) -> bool:
    """A broker that is not in the ISR leads."""
    return _in_log(run, draw, _is_change_of_isr, lambda _: {"leader": 99})


def broker_epoch_back(run: CopiedRun, draw: Random) -> bool:
    """A broker registers with an epoch that it had before."""
    return _in_log(
        run,
        draw,
        lambda row: row["type"] == "RegisterBrokerRecord" and row["metadata_offset"] > SOME,
        lambda _: {"broker_epoch": 0},
    )


def nodes_disagree(run: CopiedRun, draw: Random) -> bool:
    """One node's metadata log has another record at an offset."""
    nodes = (
        {row["node"] for row in run.table("metadata_log").to_pylist()}
        if run.has("metadata_log")
        else set()
    )
    found = drawn_row(
        draw, run, "metadata_log", lambda row: not row["snapshot"] and not row["control"]
    )
    if found is None or len(nodes) < 2:  # noqa: PLR2004  # one cannot disagree
        return False
    named = ("node", "snapshot", "metadata_offset")
    other = {"digest": found["digest"] ^ 1}
    return edited(
        run, "metadata_log", named, lambda row: other if is_same(row, found, *named) else {}
    )


def old_claim(run: CopiedRun, draw: Random) -> bool:
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
    return edited(
        run, "quorum_claims", named, lambda row: other if is_same(row, late, *named) else {}
    )


def topic_uncreated(run: CopiedRun, draw: Random) -> bool:
    """The creation of a topic was acknowledged, and the metadata log never had it."""
    made = drawn_row(
        draw,
        run,
        "metadata_writes",
        lambda row: row["f"] == "create-topic" and row["outcome"] == "ok" and bool(row["topic_id"]),
    )
    if made is None:
        return False
    other = {"topic_id": made["topic_id"][::-1]}
    return edited(
        run, "metadata_writes", ("index",), lambda row: other if is_same(row, made, "index") else {}
    )


def move_undone(run: CopiedRun, draw: Random) -> bool:
    """A reassignment was acknowledged, and the metadata log never had it."""
    moved = drawn_row(
        draw,
        run,
        "partition_writes",
        lambda row: row["f"] == "reassign" and row["outcome"] == "ok" and bool(row["replicas"]),
    )
    if moved is None:
        return False
    other = {"replicas": [*moved["replicas"], 99]}
    return edited(
        run,
        "partition_writes",
        ("index",),
        lambda row: other if is_same(row, moved, "index") else {},
    )
