"""The journal of a simulated wire: as `history.journal.TapeJournal`, but written at the end.

A process that may be killed has to write frames down at once; a simulated one may keep them: from
its seed it does it all again. So lines are written by the thousand; but each is made when its frame
is at hand, since what has left the processor's cache costs half as much again.
"""

from collections.abc import Mapping, Sequence
from json import JSONEncoder
from pathlib import Path
from typing import Final

from fencepost.history.journal import journal_path

_LINES: Final = 4096
_encoded: Final = JSONEncoder(check_circular=False).encode


class BufferedTape:
    """A tape that records frames of the wire; `close` writes what is not written yet."""

    def __init__(self, directory: Path) -> None:
        self._path = journal_path(directory, "wire")
        self._path.touch(exist_ok=False)
        self._lines: list[str] = []
        self._count = 0

    def frame(
        self, columns: Mapping[str, object], items: Sequence[Mapping[str, object]] = ()
    ) -> int:
        """Record a frame; return its number."""
        number = self._count
        self._count += 1
        self._add({"frame": number, "columns": columns, "items": items})
        return number

    def fate(self, frame: int, *, action: str, forwarded_ns: int | None) -> None:
        """Record what became of a frame, over what was said when it was sent."""
        self._add({"fate": frame, "action": action, "forwarded_ns": forwarded_ns})

    def close(self) -> None:
        """Write the rest."""
        self._write()

    def _add(self, line: Mapping[str, object]) -> None:
        self._lines.append(f"{_encoded(line)}\n")
        if len(self._lines) >= _LINES:
            self._write()

    def _write(self) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(self._lines)
        self._lines.clear()
