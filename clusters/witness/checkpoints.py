"""The small text files in which a broker keeps offsets: version, count of entries, the entries.

`replication-offset-checkpoint` (high watermarks) and `log-start-offset-checkpoint` lie in the data
directory and name partitions, `leader-epoch-checkpoint` lies in each partition's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
LOG_STARTS: Final = "log-start-offset-checkpoint"
LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
_PARTITION_METADATA: Final = "partition.metadata"
_VERSION: Final = "0"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderEpoch:
    """The leader epoch of records, and the offset from which on they are of it."""

    leader_epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Offsets:
    """An offset for each partition that the file names."""

    by_key: Mapping[str, int] = field(default_factory=dict)
    damage: str | None = None


def read_offsets(path: Path) -> Offsets:
    """The offsets in a checkpoint of a data directory; none if there is no such file."""
    entries, damage = _entries(path, width=3)
    try:
        by_key = {f"{topic}-{int(number)}": int(offset) for topic, number, offset in entries}
    except ValueError as error:
        return Offsets(damage=f"{path.name}: {error}")
    return Offsets(by_key=by_key, damage=damage)


def read_leader_epochs(directory: Path) -> tuple[tuple[LeaderEpoch, ...], str | None]:
    """Return (the leader epochs of a partition's directory, in order; the file's damage)."""
    entries, damage = _entries(directory / LEADER_EPOCHS, width=2)
    try:
        found = tuple(
            LeaderEpoch(leader_epoch=int(epoch), start_offset=int(start))
            for epoch, start in entries
        )
    except ValueError as error:
        return (), f"{LEADER_EPOCHS}: {error}"
    return found, damage


def read_topic_id(directory: Path) -> str | None:
    """The topic's id as a partition's directory states it; None if it does not."""
    try:
        lines = (directory / _PARTITION_METADATA).read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return None
    stated = dict(line.split(": ", 1) for line in lines if ": " in line)
    return stated.get("topic_id")


def _entries(path: Path, *, width: int) -> tuple[Sequence[Sequence[str]], str | None]:
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return (), None
    except (OSError, UnicodeDecodeError) as error:
        return (), f"{path.name}: {error}"
    if not lines:
        return (), None  # made, and not yet written to
    if len(lines) < 2 or lines[0] != _VERSION or lines[1] != str(len(lines) - 2):  # noqa: PLR2004 -- the two lines before the entries
        return (
            (),
            f"{path.name}: not a checkpoint of version {_VERSION} with as many entries as it says",
        )
    entries = [line.split(" ") for line in lines[2:]]
    if any(len(entry) != width for entry in entries):
        return (), f"{path.name}: an entry does not have {width} parts"
    return entries, None
