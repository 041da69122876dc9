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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints

from history.atomic import write_atomically
from history.failure import HarnessError

__all__ = [
    "LOSS_CHECKS",
    "Acknowledgement",
    "EarlyRead",
    "Election",
    "FaultAlive",
    "Forensics",
    "Join",
    "Loss",
    "MetadataNote",
    "ReplicaState",
    "Truncation",
    "ValueFate",
    "read_forensics",
    "write_forensics",
]

LOSS_CHECKS: Final = ("lost-write", "unseen", "vanished")
"""The checks whose anomalies are lost values."""

_FORMAT_VERSION: Final = 1


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
class Election:
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
class ReplicaState:
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
    election: Election | None = None
    truncations: tuple[Truncation, ...] = ()
    replicas: tuple[ReplicaState, ...] = ()
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


def _other_than_none(kind: Any) -> Any:
    return next(one for one in get_args(kind) if one is not NoneType)
