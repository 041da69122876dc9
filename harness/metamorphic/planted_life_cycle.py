"""Violations planted into the life cycles of brokers: what they registered, heard and fetched."""

from collections import defaultdict
from random import Random
from typing import Final

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.planted_log import change_record, records_of
from fencepost.harness.metamorphic.planted_rows import (
    Row,
    change_one,
    edited,
    on_zookeeper,
    rows_of,
)

_FENCED: Final = ("BrokerRegistrationChangeRecord", "FenceBrokerRecord")
_SOON_MS: Final = 10_000
_LONG_MS: Final = 20_000


def _fencings(run: CopiedRun) -> list[Row]:
    """Return the records by which a controller fenced a broker that was silent for some time.

    A broker that comes back soon is fenced as it registers, and one that leaves asks for it. Behind
    those at the end of the log nothing shows that the controller lived on. Whose last heartbeat was
    not answered may have been heard at any time.
    """
    if on_zookeeper(run):
        return []
    changes = records_of(run, *_FENCED)
    left = {row["broker_epoch"] for row in changes if row["in_controlled_shutdown"]}
    back_ms: dict[int, list[int]] = defaultdict(list)
    for row in (*records_of(run, "RegisterBrokerRecord", "UnfenceBrokerRecord"), *changes):
        if row["type"] == "RegisterBrokerRecord" or row["fenced"] is False:
            back_ms[row["broker_id"]].append(row["timestamp_ms"])
    heard = _last_answered(run)
    end_ms = max((row["timestamp_ms"] for row in rows_of(run, "metadata_log")), default=0)
    return [
        row
        for row in changes
        if row["fenced"] is True
        and row["timestamp_ms"] + _LONG_MS < end_ms
        and row["broker_epoch"] in heard - left
        and not any(
            0 <= time_ms - row["timestamp_ms"] < _SOON_MS for time_ms in back_ms[row["broker_id"]]
        )
    ]


def _last_answered(run: CopiedRun) -> set[int]:
    """Return the broker epochs whose last heartbeats were answered."""
    answers, last = set(), {}
    for row in sorted(rows_of(run, "wire"), key=lambda one: one["time_ns"]):
        if row["api"] == "BrokerHeartbeat":
            place = row["connection"], row["correlation_id"]
            if row["direction"] == "request":
                last[row["broker_epoch"]] = place
            else:
                answers.add(place)
    return {epoch for epoch, place in last.items() if place in answers}


def fencing_undone(run: CopiedRun, draw: Random) -> bool:
    """A broker that had fallen silent was never fenced, by the log."""
    return change_record(run, draw, _fencings(run), lambda _row: {"fenced": None})


def another_fenced(run: CopiedRun, draw: Random) -> bool:
    """Another broker was fenced than the one that had fallen silent."""
    registered = records_of(run, "RegisterBrokerRecord")

    def living(row: Row) -> Row | None:
        """The last registration before it of some other broker."""
        before = [
            one
            for one in registered
            if one["broker_id"] != row["broker_id"]
            and one["metadata_offset"] < row["metadata_offset"]
        ]
        return before[-1] if before else None

    rows = [row for row in _fencings(run) if living(row)]

    def news(row: Row) -> Row:
        other = living(row)
        assert other is not None
        return {name: other[name] for name in ("broker_id", "broker_epoch")}

    return change_record(run, draw, rows, news)


def unfenced_behind(run: CopiedRun, draw: Random) -> bool:
    """A broker was unfenced though it had never applied the record of its own registration."""
    unfenced = {
        (row["broker_id"], row["broker_epoch"])
        for row in records_of(run, "BrokerRegistrationChangeRecord", "UnfenceBrokerRecord")
        if row["fenced"] is False and not on_zookeeper(run)
    }
    chosen = draw.choice(sorted(unfenced)) if unfenced else None

    def news(row: Row) -> Row:
        is_its = (row["broker_id"], row["broker_epoch"]) == chosen
        if row["api"] != "BrokerHeartbeat" or not is_its or row["fetch_offset"] is None:
            return {}
        return {"fetch_offset": min(row["fetch_offset"], row["broker_epoch"] - 1)}

    columns = ("api", "broker_id", "broker_epoch", "fetch_offset")
    return chosen is not None and edited(run, "wire", columns, news)


def refused_and_running(run: CopiedRun, draw: Random) -> bool:
    """A broker whose registrations were all refused went on as if one had been accepted."""
    return change_one(
        run,
        draw,
        "wire",
        ("api", "direction", "source"),
        is_fit=lambda row: (
            row["api"] == "BrokerRegistration"
            and row["direction"] == "response"
            and row["error"] == "NONE"
        ),
        news=lambda _row: {"error": "DUPLICATE_BROKER_REGISTRATION", "broker_epoch": -1},
    )


def never_fetched(run: CopiedRun, draw: Random) -> bool:
    """A broker joined an ISR under an epoch under which it had never fetched."""
    epochs: dict[int, set[int]] = defaultdict(set)
    joined: set[tuple[int, int]] = set()
    for row in rows_of(run, "wire"):
        if row["api"] == "Fetch" and (row["broker_epoch"] or -1) >= 0:
            epochs[row["broker_id"]].add(row["broker_epoch"])
        elif row["api"] == "AlterPartition" and row["isr_epochs"]:
            joined |= set(zip(row["isr"], row["isr_epochs"], strict=True))
    several = sorted(
        broker
        for broker, known in epochs.items()
        if len(known) > 1 and (broker, max(known)) in joined
    )
    if not several:
        return False
    broker = draw.choice(several)
    before, last = sorted(epochs[broker])[-2:]

    def news(row: Row) -> Row:
        is_its = (row["api"], row["broker_id"], row["broker_epoch"]) == ("Fetch", broker, last)
        return {"broker_epoch": before} if is_its else {}

    return edited(run, "wire", ("api", "broker_id", "broker_epoch"), news)
