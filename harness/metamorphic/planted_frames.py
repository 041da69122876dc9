"""Violations planted into what brokers and controllers say to each other on the tape."""

from collections.abc import Callable
from random import Random
from typing import Any, Final

from fencepost.checkers.metadata.client_answers import CLIENTS
from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_rows import FAR, Row, change_one

_FRAME: Final = ("frame", "item")
_CHANGES: Final = ("AlterPartition", "IsrChange")
_BEATS: Final = ("BrokerHeartbeat", "MetadataHeartbeat")
_LOWEST: Final = "lowest_acknowledged_offset"


def _is_granted(row: Row) -> bool:
    return row["direction"] == "response" and row["error"] in (None, "NONE")


def _exchange(row: Row) -> tuple[Any, ...]:
    return row["connection"], row["correlation_id"]


def _change_frame(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    return change_one(run, draw, "wire", _FRAME, is_fit=is_fit, news=news)


def _change_request(
    run: CopiedRun,
    draw: Random,
    apis: tuple[str, ...],
    is_fit: Callable[[Row], bool],
    news: Callable[[Row], Row],
) -> bool:
    """Change a request that was answered without an error, for all that it named."""
    rows = run.table("wire").to_pylist() if run.has("wire") else []
    answers = [row for row in rows if row["api"] in apis and row["direction"] == "response"]
    refused = {_exchange(row) for row in answers if not _is_granted(row)}
    granted = {_exchange(row) for row in answers} - refused
    return _change_frame(
        run,
        draw,
        lambda row: (
            row["api"] in apis
            and row["direction"] == "request"
            and row["forwarded_ns"] is not None
            and _exchange(row) in granted
            and is_fit(row)
        ),
        news,
    )


def answered_other_isr(run: CopiedRun, draw: Random) -> bool:
    """A leader was told another ISR of its partition than there is."""
    return _change_frame(
        run,
        draw,
        lambda row: row["api"] == "AlterPartition" and _is_granted(row) and bool(row["isr"]),
        lambda row: {"isr": [*row["isr"], 99]},
    )


def answered_other_epoch(run: CopiedRun, draw: Random) -> bool:
    """A leader was told a partition epoch that is two ahead."""
    return _change_frame(
        run,
        draw,
        lambda row: row["api"] == "AlterPartition" and _is_granted(row) and bool(row["isr"]),
        lambda row: {"partition_epoch": row["partition_epoch"] + 2},
    )


def expected_older(run: CopiedRun, draw: Random) -> bool:
    """A change of an ISR was granted that expected an older partition epoch."""
    return _change_request(
        run,
        draw,
        ("AlterPartition",),
        lambda row: (row["partition_epoch"] or 0) > 0,
        lambda row: {"partition_epoch": row["partition_epoch"] - 1},
    )


def led_before(run: CopiedRun, draw: Random) -> bool:
    """A change of an ISR was granted to a leader of an older leader epoch."""
    return _change_request(
        run,
        draw,
        ("AlterPartition",),
        lambda row: (row["leader_epoch"] or 0) > 0,
        lambda row: {"leader_epoch": row["leader_epoch"] - 1},
    )


def sent_by_another(run: CopiedRun, draw: Random) -> bool:
    """A change of an ISR was granted to a broker that does not lead."""
    return _change_request(
        run,
        draw,
        _CHANGES,
        lambda row: row["broker_id"] is not None,
        lambda row: {"broker_id": 1 if row["broker_id"] != 1 else 2},
    )


def heartbeat_of_the_dead(run: CopiedRun, draw: Random) -> bool:
    """A heartbeat of an earlier incarnation was answered as if it were the present one's."""

    def older(row: Row) -> Row:
        named = {"broker_epoch": row["broker_epoch"] - 1} if row["broker_epoch"] else {}
        identity = row["incarnation_id"]
        if identity is not None and identity.isdigit():
            named["incarnation_id"] = str(int(identity) - 1)
        return named

    return _change_request(run, draw, _BEATS, lambda row: row["broker_epoch"] is not None, older)


def lowest_by_one(run: CopiedRun, draw: Random) -> bool:
    """A controller said that all had applied one record more than they had."""
    return _change_frame(
        run,
        draw,
        lambda row: (row[_LOWEST] or -1) > 0 and row["direction"] == "response",
        lambda row: {_LOWEST: row[_LOWEST] + 1},
    )


def lowest_back(run: CopiedRun, draw: Random) -> bool:
    """A controller said that fewer records had been applied by all than it had said before."""
    rows = run.table("wire").to_pylist() if run.has("wire") else []
    told = [row for row in rows if (row[_LOWEST] or -1) > 0 and row["direction"] == "response"]
    first = min((row[_LOWEST] for row in told), default=0)
    seen = {row["frame"] for row in told if row[_LOWEST] > first + 1}
    return _change_frame(
        run, draw, lambda row: row["frame"] in seen, lambda _: {_LOWEST: first - 1}
    )


def producer_ids_told_again(run: CopiedRun, draw: Random) -> bool:
    """A broker was given a block of producer ids that another one had."""
    rows = run.table("wire").to_pylist() if run.has("wire") else []
    given = [
        row
        for row in rows
        if row["api"] == "AllocateProducerIds" and row["producer_id"] is not None
    ]
    first = min((row["producer_id"] for row in given), default=0)
    return _change_frame(
        run,
        draw,
        lambda row: row["api"] == "AllocateProducerIds" and (row["producer_id"] or 0) > first,
        lambda _: {"producer_id": first},
    )


def _watermark_raised(run: CopiedRun, draw: Random, by: int, *, to_clients: bool) -> bool:
    return _change_frame(
        run,
        draw,
        lambda row: (
            (row["high_watermark"] or 0) > 0
            and _is_granted(row)
            and (row["source"] == CLIENTS) == to_clients
        ),
        lambda row: {"high_watermark": row["high_watermark"] + by},
    )


def watermark_ahead(run: CopiedRun, draw: Random) -> bool:
    """A client was told a high watermark that lies beyond the leader's log."""
    return _watermark_raised(run, draw, FAR, to_clients=True)


def metadata_watermark_ahead(run: CopiedRun, draw: Random) -> bool:
    """A follower of the metadata log was told a high watermark that lies beyond the log."""
    return _watermark_raised(run, draw, FAR, to_clients=False)
