"""The ledger of a run: how to undo what it does to the machine, written before it is done.

However the run ends, someone undoes it, the last deed first: the run itself; if the harness was
killed, the warden, whose will is `python -m fencepost.clusters.hosts.ledger FILE`; if that died as
well, `fencepost clean`. An undo that fails stays in the file, and `fencepost doctor` says so.

A file is JSON, one a line: first `{"run", "harness"}` (the mark of the harness's identity), then
`{"number", "undo"}` for each deed and `{"done": number}` for each that is undone. A line is on the
disk before its deed is begun; a torn last line is of a deed that was not. The file appears with its
first line, whole: one without is of no run that lives, and of no deed.
"""

import contextlib
import fcntl
import json
import os
import re
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from fencepost.clusters.hosts.process import harness_lives, harness_mark
from fencepost.clusters.hosts.undo import LetsGo, Undo, undo_data, undo_of
from fencepost.clusters.provision.cache import cache_dir
from fencepost.history.atomic import sync
from fencepost.history.failure import HarnessError


class Ledger:
    """A run's ledger; thread-safe. A context manager: leaving it undoes all that is left.

    The file comes with the first deed, and goes with the last undo.
    """

    def __init__(self, *, run_id: str, directory: Path | None = None) -> None:
        name = re.sub(r"[^\w.-]", "-", f"{run_id}-{os.getpid()}")
        self.path: Final = (directory or _ledgers()) / f"{name}.jsonl"
        self._head = {"run": run_id, "harness": harness_mark()}
        self._lock = threading.Lock()
        self._numbers: dict[int, Undo] = {}

    @property
    def will(self) -> list[str]:
        """The command that undoes all that is left, whoever runs it."""
        return [sys.executable, "-m", "fencepost.clusters.hosts.ledger", str(self.path)]

    def note(self, undo: Undo) -> None:
        """Write down how to undo what is about to be done. HarnessError if it cannot be kept."""
        with self._lock:
            number = max(self._numbers, default=-1) + 1
            lines = [{"number": number, "undo": undo_data(undo)}]
            try:
                if not self.path.exists():
                    self._begin()
                _append(self.path, lines)
            except OSError as error:
                raise HarnessError(f"{self.path}: cannot be written: {error.strerror}") from error
            self._numbers[number] = undo

    def _begin(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".new")
        _append(draft, [self._head])
        draft.rename(self.path)
        sync(self.path.parent)

    def settle(self, undo: Undo) -> None:
        """Undo one deed now, before the end."""
        undo.undo()
        with self._lock:
            number = next(n for n, one in reversed(self._numbers.items()) if one == undo)
            _append(self.path, [{"done": number}])
            # Its number stays taken.
            self._numbers[number] = _SETTLED

    def close(self) -> None:
        """Undo all that is left, the last deed first. HarnessError with what could not be undone.

        Idempotent.
        """
        with self._lock:
            undo_all(self.path)
            self._numbers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except HarnessError as second:
            if error is None:
                raise
            error.add_note(f"and then: {second}")


class _Settled:
    """Stands where an undo stood that has been done."""

    def undo(self) -> None:
        """Nothing is left to do."""


_SETTLED: Final = _Settled()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Left:
    """The deeds that a file says are not undone yet, in their order."""

    run_id: str
    harness: str | None
    """None: it was torn in its first line."""
    undos: dict[int, Undo]


def undo_all(path: Path) -> list[str]:
    """Undo what this ledger still holds, and remove it; what was undone, in words.

    Two who try it at once do it one after the other. Raises HarnessError with all that could not be
    undone; the rest is undone all the same.
    """
    done, failures = [], []
    with _locked(path) as there:
        if not there:
            return []
        left = _read(path)
        _cut_torn_line(path)
        _let_go(left)
        for number, undo in sorted(left.undos.items(), reverse=True):
            try:
                undo.undo()
            except HarnessError as error:
                failures.append(str(error))
                continue
            _append(path, [{"done": number}])
            done.append(f"undone for run {left.run_id}: {undo}")
        if not failures:
            path.unlink()
    if failures:
        raise HarnessError(
            f"the machine is not as it was before the run: {'; '.join(failures)}; "
            "`fencepost clean` tries again"
        )
    return done


def let_go_all(path: Path) -> None:
    """Let go the processes that deeds of this ledger hold. Until then SIGKILL may not end them."""
    with _locked(path) as there:
        if there:
            _let_go(_read(path))


def left_ledgers() -> tuple[Path, ...]:
    """The ledgers of runs whose harness is dead, by name."""
    return tuple(path for path in sorted(_ledgers().glob("*.jsonl")) if _is_left(path))


def _ledgers() -> Path:
    return cache_dir() / "ledgers"


def _let_go(left: _Left) -> None:
    for undo in left.undos.values():
        if isinstance(undo, LetsGo):
            undo.let_go()


def _is_left(path: Path) -> bool:
    try:
        harness = _read(path).harness
        return harness is None or not harness_lives(harness)
    except HarnessError:
        return True
    except OSError:  # it has just gone
        return False


def _read(path: Path) -> _Left:
    """Read a file; HarnessError if it was not written by a known release of Fencepost."""
    lines = path.read_text(errors="replace").split("\n")[:-1]  # behind the last newline it is torn
    try:
        entries: list[dict[str, Any]] = [json.loads(line) for line in lines]
        head, *deeds = entries or [{"run": "unknown", "harness": None}]
        undone = {deed["done"] for deed in deeds if "done" in deed}
        return _Left(
            run_id=head["run"],
            harness=head["harness"],
            undos={
                deed["number"]: undo_of(deed["undo"])
                for deed in deeds
                if "undo" in deed and deed["number"] not in undone
            },
        )
    except (ValueError, KeyError, TypeError) as error:
        raise HarnessError(
            f"{path} is not a readable ledger ({error!r}): undo by hand what its run did to the "
            "machine, then delete the file"
        ) from error


def _cut_torn_line(path: Path) -> None:
    """Cut off half a line, so that nothing is written behind it."""
    with path.open("r+b") as file:
        file.truncate(file.read().rfind(b"\n") + 1)


def _append(path: Path, lines: Sequence[Mapping[str, object]]) -> None:
    with path.open("ab") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines).encode())
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[bool]:
    """Hold the file; yield False if it does not exist, or is gone by the time that it is ours."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        yield False
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield path.exists()


if __name__ == "__main__":
    undo_all(Path(sys.argv[1]))
