"""A frame in words: a few for its arrow, all of its fields for those who look closer."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from report.frames import Frame
from report.notation import length, moment

__all__ = ["answer_of", "details_of", "words_of"]

_ITEMS_NAMED: Final = 2


def words_of(frame: Frame) -> str:
    """Return the content of the frame, short enough for the arrow."""
    if not frame.is_answer:
        # The topics of the run before Kafka's own.
        items = sorted(frame.items, key=lambda item: str(item.get("topic", "")).startswith("__"))
        said = ", ".join(filter(None, map(_item, items[:_ITEMS_NAMED])))
        more = len(frame.items) - _ITEMS_NAMED
        said += f" and {more} more" if more > 0 else ""
        return f"{frame.api} {said}".strip()
    return f"{frame.api} {answer_of(frame)}".strip()


def answer_of(frame: Frame) -> str:
    """Return `ok`, or the errors; and what the answer grants."""
    first = frame.items[0]
    if frame.errors:
        return ", ".join(frame.errors)
    granted = (
        f"epoch {first['broker_epoch']}" if frame.api == "BrokerRegistration" else "",
        f"isr {first['isr']}" if "isr" in first else "",
        f"producer epoch {first['producer_epoch']}" if "producer_epoch" in first else "",
        first.get("detail", "") if frame.api in ("Vote", "BeginQuorumEpoch") else "",
    )
    return " ".join(filter(None, ("ok" if "error" in first else "", *granted)))


def _item(item: Mapping[str, Any]) -> str:
    """Describe one item in a few words."""
    return " ".join(filter(None, (say(item) for say in _SAYINGS)))


def _key(item: Mapping[str, Any]) -> str:
    topic = item.get("topic") or item.get("topic_id")
    if topic is None or topic == "__cluster_metadata":
        return ""
    return f"{topic}-{item['partition']}" if "partition" in item else str(topic)


def _transaction(item: Mapping[str, Any]) -> str:
    name = item.get("transactional_id", "")
    words = {True: "commit", False: "abort"}
    return " ".join(filter(None, (words.get(item.get("committed", ...), ""), name)))


def _quorum(item: Mapping[str, Any]) -> str:
    if item["api"] not in ("Vote", "BeginQuorumEpoch", "EndQuorumEpoch"):
        return ""
    return f"epoch {item['leader_epoch']}" if "leader_epoch" in item else ""


_SAYINGS: Final = (
    _key,
    lambda item: f"isr {item['isr']}" if "isr" in item else "",
    lambda item: "delete" if item.get("delete") else "",
    _transaction,
    lambda item: f"producer epoch {item['producer_epoch']}" if "producer_epoch" in item else "",
    _quorum,
    lambda item: item.get("path", ""),
    lambda item: f"zxid {item['zxid']:#x}" if item.get("zxid", -1) >= 0 else "",
)


def details_of(frame: Frame, answer: Frame | None) -> Iterator[str]:
    """Yield lines for readers who look closer: all fields of the first items."""
    version = f" v{frame.api_version}" if frame.api_version >= 0 else ""
    yield f"{frame.api}{version} {frame.sender} → {frame.receiver}"
    yield f"sent {moment(frame.time_ns)}" + _arrival(frame)
    for item in frame.items[:_ITEMS_NAMED]:
        yield _fields(item)
    if answer is not None:
        yield f"answered after {length(answer.time_ns - frame.time_ns)}: {answer_of(answer)}"
        yield _fields(answer.items[0])
    yield f"connection {frame.connection}, correlation id {frame.correlation_id}"


def _arrival(frame: Frame) -> str:
    by = f" by {frame.rule}" if frame.rule and frame.touched else ""
    if frame.touched and frame.forwarded_ns is None:
        return f", {frame.action}{by}, never passed on"
    if frame.forwarded_ns is None:
        return ", never passed on"
    late = length(frame.forwarded_ns - frame.time_ns)
    return f", {frame.action}{by}, passed on {moment(frame.forwarded_ns)}, {late} later"


_TOLD_ELSEWHERE: Final = frozenset(
    (
        *("frame", "item", "connection", "source", "target", "direction", "time_ns"),
        *("forwarded_ns", "action", "rule", "api", "api_key", "api_version", "correlation_id"),
        *("size_bytes", "client_id", "topic_id"),
    )
)


def _fields(item: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{value:#x}' if name == 'zxid' else value}"
        for name, value in item.items()
        if name not in _TOLD_ELSEWHERE
    )
