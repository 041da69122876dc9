"""The fate of lost records and its causes: `forensics.json`, stored with the verdict.

A *loss* is a stretch of offsets of one key that went together: the same fate, and the same election
that did without them. Of each it says who acknowledged the records and under which ISR, how the
broker that was then elected had come into the ISR, with how much of a log it was elected, who
truncated, what the metadata log says of the time in between, and which faults were alive. It is
told in one sentence, and in figures.

The values are those that the checks lost-write, unseen and vanished spell out; these are bounded a
key, the counts are not. Times are ns of the run; those of metadata records are as exact as the
controller's clock. Nothing here is a verdict: where the evidence leaves several explanations, the
fields for it are empty.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from fencepost.checkers.ranges import range_text
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError

LOSS_CHECKS: Final = ("lost-write", "unseen", "vanished")
"""The checks whose anomalies are lost values."""

_FORMAT_VERSION: Final = 1
_NS_A_SECOND: Final = 1_000_000_000


class ValueFate(StrEnum):
    """The place of a lost value."""

    LOST = "lost"
    """On no replica's disk."""
    UNREACHABLE = "unreachable"
    """On the disk of a replica, but not in the log of the partition's leader."""
    UNREAD = "unread"
    """The value is in the leader's log, but no reader was given it."""
    UNCERTAIN = "uncertain"
    """On no disk that could be read whole; some could not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledgement:
    """Records of a loss that were acknowledged under one version of the partition."""

    leader: int
    leader_epoch: int
    broker_epoch: int | None
    """The broker epoch of the leader."""
    isr: tuple[int, ...]
    partition_epoch: int
    metadata_offset: int
    """The metadata offset of the version."""
    first_offset: int
    last_offset: int
    count: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyRead:
    """Records of a loss that were first read while the ISR was smaller than asked for."""

    leader: int
    isr: tuple[int, ...]
    metadata_offset: int
    """The metadata offset of the partition's version."""
    min_isr: int
    """The topic's `min.insync.replicas`."""
    count: int
    first_ns: int
    last_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """The way in which the elected broker had last joined the ISR."""

    broker_id: int
    metadata_offset: int
    partition_epoch: int
    time_ns: int
    frame: int | None
    """The AlterPartition that let it in, if it is on the tape."""
    sent_ns: int | None
    forwarded_ns: int | None
    stale: bool
    """It joined on the word of an earlier incarnation: stale-epoch-join, or unfetched-epoch."""
    judged_epoch: int | None
    """The broker epoch on which the leader judged a stale join in sync, if it is known."""
    registration_offset: int | None
    """The offset of its registration in force when it joined."""
    registered_epoch: int | None
    registered_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LossyElection:
    """The election that did without the records."""

    leader: int
    leader_epoch: int
    metadata_offset: int
    time_ns: int
    log_end_offset: int
    """The log end offset of the elected broker when it was elected."""
    unclean: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """A replica that had the records and cut them off, or lost its disk."""

    node: str
    to_offset: int | None
    """None: a fault took its disk."""
    fault: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReplica:
    """A replica of the key as it lay on its disk in the end."""

    node: str
    log_start_offset: int
    log_end_offset: int
    high_watermark: int | None
    leader_epochs: tuple[tuple[int, int], ...]
    """(leader epoch, the offset it starts at)."""
    held_count: int
    """The number of the loss's values that it holds."""
    damage: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataNote:
    """A record of the metadata log, in words."""

    metadata_offset: int
    time_ns: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAlive:
    """A fault that was alive between the first acknowledgement and the election."""

    index: int
    fault: str
    targets: tuple[str, ...]
    begin_ns: int
    end_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A stretch of values that went together."""

    key: str
    fate: ValueFate
    checks: tuple[str, ...]
    """The checks that reported any of the values."""
    count: int
    first_offset: int | None
    """The first offset; None if the offsets of the values are not known."""
    last_offset: int | None
    values: tuple[int, ...]
    """The first few."""
    operations: tuple[int, ...]
    """Their sends."""
    acknowledgements: tuple[Acknowledgement, ...] = ()
    early_reads: tuple[EarlyRead, ...] = ()
    join: Join | None = None
    election: LossyElection | None = None
    truncations: tuple[Truncation, ...] = ()
    replicas: tuple[FinalReplica, ...] = ()
    metadata: tuple[MetadataNote, ...] = ()
    """The log's notes on the partition and its brokers, from the last version under which the
    records were acknowledged to the election.
    """
    faults: tuple[FaultAlive, ...] = ()
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forensics:
    """All losses of a run."""

    run_id: str
    counts: Mapping[str, int] = field(default_factory=dict)
    """Anomalies by check, those that are not spelled out included."""
    losses: tuple[Loss, ...] = ()
    """The losses by key and offset."""
    troubles: tuple[str, ...] = ()
    """The reasons why some keys could not be examined."""


def write_forensics(path: Path, forensics: Forensics) -> None:
    """Replace the forensics at `path`, atomically. Raises HarnessError if the disk refuses."""
    content = {"format_version": _FORMAT_VERSION, **asdict(forensics)}
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def read_forensics(path: Path) -> Forensics | None:
    """Return the forensics at `path`; None without a file, as where nothing was lost.

    Raises HarnessError if the file is torn or of another format.
    """
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise HarnessError(f"cannot read the forensics {path}: {error.strerror}") from error
    except ValueError as error:
        raise HarnessError(f"the forensics {path} are not JSON: {error}") from error
    found = content.pop("format_version", None) if isinstance(content, dict) else None
    if found != _FORMAT_VERSION:
        raise HarnessError(f"the forensics {path} have format {found}, expected {_FORMAT_VERSION}")
    try:
        forensics: Forensics = parsed(Forensics, content)
    except (KeyError, TypeError, ValueError) as error:
        raise HarnessError(f"the forensics {path} are incomplete or wrong: {error!r}") from error
    return forensics


def parsed(kind: Any, content: Any) -> Any:
    """Return `content`, as JSON gave it, as a value of this type of the module."""
    if get_origin(kind) in (Union, UnionType):
        return None if content is None else parsed(_other_than_none(kind), content)
    if get_origin(kind) is tuple:
        inner = get_args(kind)
        if inner[-1] is Ellipsis:
            return tuple(parsed(inner[0], item) for item in content)
        return tuple(parsed(one, item) for one, item in zip(inner, content, strict=True))
    if get_origin(kind) is Mapping:
        return dict(content)
    if hasattr(kind, "__dataclass_fields__"):
        hints = get_type_hints(kind)
        return kind(
            **{
                one.name: parsed(hints[one.name], content[one.name])
                for one in fields(kind)
                if one.name in content
            }
        )
    if issubclass(kind, StrEnum):
        return kind(content)
    if not isinstance(content, kind):
        raise TypeError(f"expected {kind.__name__}, found {content!r}")
    return content


def sentence_of(loss: Loss) -> str:
    """Return what happened in one sentence, as far as it is known."""
    parts = [_acknowledged(loss), *map(_read, loss.early_reads)]
    parts += [
        f"{_broker(one)} lost its disk ({one.fault})" for one in loss.truncations if one.fault
    ]
    if loss.join is not None:
        parts.append(_joined(loss.join))
    if loss.election is not None:
        parts.append(_elected(loss.election))
    cuts = [_cut(loss, to_offset) for to_offset in _ends(loss)]
    parts.append(", and ".join(filter(None, [_listed(cuts), _fate(loss)])))
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."


def _other_than_none(kind: Any) -> Any:
    return next(one for one in get_args(kind) if one is not NoneType)


def _acknowledged(loss: Loss) -> str:
    what = f"{loss.count} records of {loss.key}"
    if loss.first_offset is not None and loss.last_offset is not None:
        where = range_text(loss.first_offset, loss.last_offset)
        whole = loss.last_offset - loss.first_offset + 1 == loss.count
        what = (
            f"{where} of {loss.key}" if whole else f"{loss.count} records at {where} of {loss.key}"
        )
    if not loss.acknowledgements:
        return f"{what}, sent and not acknowledged by anybody known"
    leaders = _listed(f"broker {one.leader}" for one in loss.acknowledgements)
    epochs = [str(one.leader_epoch) for one in loss.acknowledgements]
    isrs = _listed((_ids(one.isr) for one in loss.acknowledgements), last=", then ")
    plural = "s" if len(set(epochs)) > 1 else ""
    return (
        f"{leaders} acknowledged {what} in leader epoch{plural} {_listed(epochs)} with ISR {isrs}"
    )


def _read(early: EarlyRead) -> str:
    return (
        f"consumers had read {early.count} of them while the ISR was {_ids(early.isr)}, and "
        f"min.insync.replicas is {early.min_isr}"
    )


def _joined(join: Join) -> str:
    by = "" if join.frame is None else f" by AlterPartition frame {join.frame}"
    text = f"broker {join.broker_id} joined the ISR at metadata offset {join.metadata_offset}{by}"
    if join.stale and join.sent_ns is not None and join.registered_ns is not None:
        early_s = (join.registered_ns - join.sent_ns) / _NS_A_SECOND
        when = f"{abs(early_s):.1f} s {'before' if early_s >= 0 else 'after'}"
        text += f", sent {when} its new registration (offset {join.registration_offset})"
    return text


def _elected(election: LossyElection) -> str:
    how = "uncleanly " if election.unclean else ""
    return (
        f"broker {election.leader} was {how}elected at metadata offset {election.metadata_offset} "
        f"with log end {election.log_end_offset}"
    )


def _ends(loss: Loss) -> list[int]:
    """Return the distinct offsets that logs were truncated to."""
    return sorted({one.to_offset for one in loss.truncations if one.to_offset is not None})


def _cut(loss: Loss, to_offset: int) -> str:
    who = [_broker(one) for one in loss.truncations if one.to_offset == to_offset]
    return f"{_listed(who)} truncated to {to_offset}"


def _broker(truncation: Truncation) -> str:
    return f"broker {truncation.node.rpartition('-')[2]}"


def _fate(loss: Loss) -> str:
    holders = _listed(one.node for one in loss.replicas if one.held_count)
    match loss.fate:
        case ValueFate.LOST:
            return "no replica holds them any more"
        case ValueFate.UNREACHABLE:
            return f"only {holders} still holds them, outside the leader's log"
        case ValueFate.UNREAD:
            return f"they are in the leader's log ({holders}), and no read returned them"
        case ValueFate.UNCERTAIN:
            return "no disk that could be read holds them"


def _listed(words: Iterator[str] | list[str], *, last: str = " and ") -> str:
    kept = list(dict.fromkeys(words))
    return last.join(filter(None, [", ".join(kept[:-1]), kept[-1] if kept else ""]))


def _ids(ids: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, ids))}]"
