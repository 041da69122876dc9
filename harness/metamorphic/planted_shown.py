"""Violations planted into what brokers showed of metadata, and told of themselves."""

from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Final

import numpy as np

from fencepost.checkers.quiet import long_waits, quiet
from fencepost.checkers.sources import source_of
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import FAR, Row, change_one, change_shown, rows_of

_READ: Final = ("read", "topic", "partition")
_SOON_NS: Final = 1_000_000_000
_MS: Final = 1_000_000


def _following_soon(run: CopiedRun) -> list[tuple[Row, Row]]:
    """Return what a broker showed of a partition, and what it showed again soon afterwards."""
    found: list[tuple[Row, Row]] = []
    last: dict[tuple[str, str, int], Row] = {}
    shown = [row for row in rows_of(run, "describes") if row["partition"] is not None]
    for row in sorted(shown, key=lambda one: one["call_ns"]):
        of = (row["node"], row["topic_id"] or row["topic"], row["partition"])
        before = last.get(of)
        if before is not None and 0 < row["call_ns"] - before["return_ns"] < _SOON_NS:
            found.append((before, row))
        last[of] = row
    return found


def epoch_shown_back(run: CopiedRun, draw: Random) -> bool:
    """A broker showed an older leader epoch than it had shown a moment before."""
    soon = {
        tuple(row[name] for name in _READ)
        for before, row in _following_soon(run)
        if row["leader_epoch"] == before["leader_epoch"] and (row["leader_epoch"] or 0) > 0
    }
    return change_shown(
        run,
        draw,
        lambda row: tuple(row[name] for name in _READ) in soon,
        lambda row: {"leader_epoch": row["leader_epoch"] - 1},
    )


def dead_topic_shown(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a topic that others had long known to be deleted."""
    return _error_changed(run, draw, f="delete-topic")


def topic_hidden(run: CopiedRun, draw: Random) -> bool:
    """A topic that nobody deleted is unknown a moment later to a broker that had shown it."""
    deleted = {
        row["topic"] for row in rows_of(run, "metadata_writes") if row["f"] == "delete-topic"
    }
    soon = {row["read"] for _, row in _following_soon(run)}
    is_held = _promised(run)
    first_ns: dict[str, int] = {}
    partitions: Counter[tuple[int, str]] = Counter()
    for row in sorted(rows_of(run, "describes"), key=lambda one: one["call_ns"]):
        if row["partition"] is not None:
            first_ns.setdefault(row["topic"], row["return_ns"])
            partitions[row["read"], row["topic"]] += 1
    nothing = dict.fromkeys(
        ("topic_id", "leader", "leader_epoch", "isr", "replicas", "config_value")
    )
    return change_shown(
        run,
        draw,
        lambda row: (
            row["read"] in soon
            and row["topic"] not in deleted
            and partitions[row["read"], row["topic"]] == 1
            and is_held(row["call_ns"], first_ns[row["topic"]])
        ),
        lambda _: {"error": "UNKNOWN_TOPIC_OR_PARTITION", "partition": None, **nothing},
    )


def _promised(run: CopiedRun) -> Callable[[int, int], bool]:
    """Return whether a read called then may lack nothing that was known since then.

    A run that promises no age of metadata is told how old they were, and accused of nothing.
    """
    promises = run.manifest.promises
    calm = quiet(run.table("faults"), long_waits(source_of(run.table("wire"))))
    settle_ns = int(promises.metadata_settle_ms * _MS)
    ages = (promises.metadata_age_max_ms, promises.metadata_settled_age_max_ms)
    always_ns, settled_ns = (2**62 if age is None else int(age * _MS) for age in ages)

    def is_held(call_ns: int, known_ns: int) -> bool:
        (since_ns,) = calm.since_ns(np.array([call_ns])).tolist()
        is_settled = since_ns <= call_ns - settle_ns
        return call_ns - known_ns > (min(always_ns, settled_ns) if is_settled else always_ns)

    return is_held


def _error_changed(run: CopiedRun, draw: Random, *, f: str) -> bool:
    """Let a broker show a topic as it had shown it, after it was changed so."""
    shown = {
        row["topic"]: row
        for row in rows_of(run, "describes")
        if row["partition"] == 0 and row["error"] in (None, "NONE")
    }
    done: dict[str, int] = {}
    for row in rows_of(run, "metadata_writes"):
        if (row["f"], row["outcome"]) == (f, "ok"):
            done[row["topic"]] = row["return_ns"]
    columns = ("topic_id", "partition", "leader", "leader_epoch", "isr", "replicas")
    is_held = _promised(run)
    again = [
        row
        for row in rows_of(run, "describes")
        if row["partition"] is None
        and row["topic"] in shown
        and row["topic"] in done
        and is_held(row["call_ns"], done[row["topic"]])
    ]
    chosen = draw.choice(again) if again else None
    return chosen is not None and change_one(
        run,
        draw,
        "describes",
        _READ,
        is_fit=lambda row: row == chosen,
        news=lambda row: {"error": "NONE", **{one: shown[row["topic"]][one] for one in columns}},
    )


def replicas_shown_other(run: CopiedRun, draw: Random) -> bool:
    """A broker showed replicas that a partition never had."""
    return change_shown(
        run,
        draw,
        lambda row: bool(row["replicas"]),
        lambda row: {"replicas": [*row["replicas"], 99]},
    )


def partitions_shown_more(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a partition that its topic never had."""
    return change_shown(
        run, draw, lambda row: row["partition"] is not None, lambda _: {"partition": 4711}
    )


def setting_shown_early(run: CopiedRun, draw: Random) -> bool:
    """A broker showed a setting before it was written."""
    first_ns: dict[tuple[str, int], int] = {}
    for row in rows_of(run, "metadata_writes"):
        if row["config_value"]:
            first_ns[row["topic"], row["config_value"]] = row["call_ns"]
    last = {topic: (value, call_ns) for (topic, value), call_ns in sorted(first_ns.items())}

    def is_before(row: Row) -> bool:
        value, call_ns = last.get(row["topic"], (0, 0))
        return (
            row["config_value"] is not None
            and row["config_value"] < value
            and (row["return_ns"] < call_ns)
        )

    return change_shown(run, draw, is_before, lambda row: {"config_value": last[row["topic"]][0]})


def applied_ahead(run: CopiedRun, draw: Random) -> bool:
    """A broker said that it had applied more metadata than there were."""
    return change_one(
        run,
        draw,
        "wire",
        ("frame",),
        is_fit=lambda row: (
            row["api"] == "BrokerHeartbeat"
            and row["direction"] == "request"
            and (row["fetch_offset"] or -1) > 0
            and row["forwarded_ns"] is not None
        ),
        news=lambda row: {"fetch_offset": row["fetch_offset"] + FAR},
    )
