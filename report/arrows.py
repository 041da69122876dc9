"""Arrows from frames: an exchange that was answered at once is one, and repeats are counted.

A picture has room for a bounded number of arrows. Frames that a proof names come first, then those
that a rule disturbed and the answers to them, refused ones, and the rest by nearness; those left
out are counted. An arrow has a few words of its frame, and all of its fields for a closer look.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from fencepost.report.frames import DECIDING, DISTURBING, ShownFrame
from fencepost.report.notation import length, moment

ARROWS_MAX: Final = 120
_AT_ONCE_NS: Final = 100_000_000
"""An answer within this is drawn with its question."""
_AGAIN_NS: Final = 2_000_000_000
"""The same again within this is a repeat."""
_LATE_NS: Final = 50_000_000
"""A frame on the proxy for longer than this is drawn with its wait."""


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
_TOLD_ELSEWHERE: Final = frozenset(
    (
        *("frame", "item", "connection", "source", "target", "direction", "time_ns"),
        *("forwarded_ns", "action", "rule", "api", "api_key", "api_version", "correlation_id"),
        *("size_bytes", "client_id", "topic_id"),
    )
)


class ArrowFate(StrEnum):
    """The end of a frame, as it is drawn."""

    PASSED = "passed"
    LATE = "late"
    """The frame arrived, long after it was sent."""
    WAITING = "waiting"
    """The frame was still held when the recording ended."""
    LOST = "lost"
    """The frame never arrived."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrow:
    """One frame, or a request with its answer, or several that say the same."""

    frame: int
    frames: tuple[int, ...]
    """The frames that it stands for."""
    exchange: tuple[int, int]
    """The exchange: its connection and correlation id."""
    api: str
    sender: str
    receiver: str
    sent_ns: int
    arrived_ns: int | None
    fate: ArrowFate
    action: str
    """The table's word."""
    rule: str | None
    is_answer: bool
    words: str
    answer: str | None
    """The answer, if it came back at once; else None."""
    refused: bool
    details: tuple[str, ...]
    """The lines for a reader who looks closer."""
    proven: bool = False
    """True if the proof of an anomaly that the page shows names it."""
    repeats: int = 0
    until_ns: int = 0

    @property
    def disturbed(self) -> bool:
        """True if a rule changed the exchange."""
        return self.action in DISTURBING


def arrows_of(frames: Sequence[ShownFrame], *, proven: Collection[int] = ()) -> tuple[Arrow, ...]:
    """Return the arrows in the order in which they were sent; `proven`: frames that proofs name."""
    answers = {frame.exchange: frame for frame in frames if frame.is_answer}
    merged: set[int] = set()
    found = []
    for frame in frames:
        if frame.number in merged:
            continue
        answer = answers.get(frame.exchange) if frame.is_request else None
        if answer is not None and _at_once(frame, answer):
            merged.add(answer.number)
        else:
            answer = None
        arrow = _arrow(frame, answer)
        found.append(replace(arrow, proven=not set(proven).isdisjoint(arrow.frames)))
    found.sort(key=lambda arrow: (arrow.sent_ns, arrow.frame))
    return tuple(_without_repeats(found))


def chosen_arrows(
    arrows: Sequence[Arrow], *, at_most: int = ARROWS_MAX
) -> tuple[tuple[Arrow, ...], Counter[str]]:
    """Return the arrows to draw, in order, and by API how many are left out."""
    disturbed = [arrow.sent_ns for arrow in arrows if arrow.disturbed or arrow.proven]
    exchanges = {arrow.exchange for arrow in arrows if arrow.disturbed}

    def rank(arrow: Arrow) -> tuple[int, int]:
        near = min((abs(arrow.sent_ns - at) for at in disturbed), default=arrow.sent_ns)
        if arrow.proven or arrow.disturbed:
            return (0 if arrow.proven else 1), arrow.sent_ns
        if arrow.exchange in exchanges:
            return 2, near
        return (3 if arrow.refused else 4), near

    kept = sorted(arrows, key=rank)[:at_most]
    out = Counter(arrow.api for arrow in sorted(arrows, key=rank)[at_most:])
    return tuple(sorted(kept, key=lambda arrow: (arrow.sent_ns, arrow.frame))), out


def _at_once(request: ShownFrame, answer: ShownFrame) -> bool:
    if request.touched or answer.touched:
        return False
    return 0 <= answer.time_ns - request.time_ns <= _AT_ONCE_NS


def _without_repeats(arrows: Iterable[Arrow]) -> Iterator[Arrow]:
    """Yield the first of several with the same words between the same two, with a count."""
    kept: list[Arrow] = []
    last: dict[tuple[object, ...], int] = {}
    for arrow in arrows:
        same = (
            *(arrow.sender, arrow.receiver, arrow.words, arrow.answer, arrow.is_answer),
            *(arrow.fate, arrow.action, arrow.rule, arrow.proven),
        )
        place = last.get(same)
        if place is not None and not (arrow.disturbed and arrow.api in DECIDING):
            first = kept[place]
            if arrow.sent_ns - max(first.until_ns, first.sent_ns) <= _AGAIN_NS:
                kept[place] = replace(
                    first,
                    frames=(*first.frames, *arrow.frames),
                    repeats=first.repeats + 1,
                    until_ns=arrow.sent_ns,
                )
                continue
        last[same] = len(kept)
        kept.append(arrow)
    return iter(kept)


def _arrow(frame: ShownFrame, answer: ShownFrame | None) -> Arrow:
    errors = (answer or frame).errors if answer or frame.is_answer else ()
    return Arrow(
        frame=frame.number,
        frames=(frame.number, *((answer.number,) if answer else ())),
        exchange=frame.exchange,
        api=frame.api,
        sender=frame.sender,
        receiver=frame.receiver,
        sent_ns=frame.time_ns,
        arrived_ns=frame.forwarded_ns,
        fate=_fate(frame),
        action=frame.action,
        rule=frame.rule if frame.touched else None,
        is_answer=frame.is_answer,
        words=_words_of(frame),
        answer=None if answer is None else _answer_of(answer),
        refused=bool(errors),
        details=tuple(_details_of(frame, answer)),
    )


def _fate(frame: ShownFrame) -> ArrowFate:
    if frame.action == "held":
        return ArrowFate.WAITING
    if frame.forwarded_ns is None:
        return ArrowFate.LOST
    return ArrowFate.LATE if frame.forwarded_ns - frame.time_ns > _LATE_NS else ArrowFate.PASSED


def _words_of(frame: ShownFrame) -> str:
    """Return the content of the frame, short enough for the arrow."""
    if not frame.is_answer:
        said = ", ".join(filter(None, map(_item, frame.items)))
        more = frame.item_count - len(frame.items)
        said += f" and {more} more" if more > 0 else ""
        return f"{frame.api} {said}".strip()
    return f"{frame.api} {_answer_of(frame)}".strip()


def _answer_of(frame: ShownFrame) -> str:
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


def _details_of(frame: ShownFrame, answer: ShownFrame | None) -> Iterator[str]:
    """Yield lines for readers who look closer: all fields of the first items."""
    version = f" v{frame.api_version}" if frame.api_version >= 0 else ""
    yield f"{frame.api}{version} {frame.sender} → {frame.receiver}"
    yield f"sent {moment(frame.time_ns)}" + _arrival(frame)
    for item in frame.items:
        yield _fields(item)
    if answer is not None:
        yield f"answered after {length(answer.time_ns - frame.time_ns)}: {_answer_of(answer)}"
        yield _fields(answer.items[0])
    yield f"connection {frame.connection}, correlation id {frame.correlation_id}"


def _arrival(frame: ShownFrame) -> str:
    by = f" by {frame.rule}" if frame.rule and frame.touched else ""
    if frame.touched and frame.forwarded_ns is None:
        return f", {frame.action}{by}, never passed on"
    if frame.forwarded_ns is None:
        return ", never passed on"
    late = length(frame.forwarded_ns - frame.time_ns)
    return f", {frame.action}{by}, passed on {moment(frame.forwarded_ns)}, {late} later"


def _fields(item: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name.replace('_', ' ')} {f'{value:#x}' if name == 'zxid' else value}"
        for name, value in item.items()
        if name not in _TOLD_ELSEWHERE
    )
