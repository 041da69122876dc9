"""Keep what a node cuts off its metadata log, in a directory beside its data.

The directory has files with Kafka's names: pieces of the log, each named as a segment is, and a
snapshot where a leader's replaced the log. `clusters.witness.metadata_log` puts them in front of
what the node has.

Kept are the records that the newest snapshot sums up: those up to its end, of its epoch. Such
records are committed. Records that it does not sum up were lost, or another log's snapshot replaced
them: they may never have been committed, and that snapshot is kept in their place, as a mark that
something is not there. What was kept before of the same offsets is superseded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKPOINT_SUFFIX: Final = ".checkpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class CutPrefix:
    """The beginning of a metadata log, which goes."""

    begin: int
    """The offset at which the log has begun."""
    offset: int
    """The offset at which it begins from now on."""
    last: tuple[int, int] | None
    """(end offset, epoch) of the last batch that goes; None: no batch goes."""
    snapshot: tuple[int, int]
    """(end offset, epoch) of the node's newest snapshot. It may be later than `offset`."""

    @property
    def is_summed_up(self) -> bool:
        """Return whether the newest snapshot is of the very records that go."""
        if self.last is None or self.last[0] != self.offset:
            return False
        return self.offset < self.snapshot[0] or self.last[1] == self.snapshot[1]


def keep(
    kept: Path, cut: CutPrefix, *, records: Callable[[], bytes], snapshot: Callable[[], bytes]
) -> None:
    """Keep in `kept` what goes: its `records`, or the `snapshot` that replaces them, as bytes."""
    is_own = cut.is_summed_up
    begin = cut.begin if is_own else cut.snapshot[0]
    kept.mkdir(parents=True, exist_ok=True)
    for file in kept.iterdir():
        start = int(file.name.split("-")[0].split(".")[0])
        # A snapshot at the beginning of a piece is what the piece goes on from.
        if start > begin or (start == begin and not (is_own and file.suffix == CHECKPOINT_SUFFIX)):
            file.unlink()
    if is_own:
        (kept / f"{begin:020}.log").write_bytes(records())
    else:
        (kept / checkpoint_name(*cut.snapshot)).write_bytes(snapshot())


def checkpoint_name(end_offset: int, epoch: int) -> str:
    """Return the name of a snapshot's file."""
    return f"{end_offset:020}-{epoch:010}{CHECKPOINT_SUFFIX}"
