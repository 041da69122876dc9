"""The errors that end a run, each with one line a user can act on.

Three kinds of error are never mixed: a broken assumption of ours is an `assert`; an answer of the
system under test is data; everything that stops a run is one of these, and its message says what
was expected, what was found, where, and the way out.
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

T = TypeVar("T")

_FREE_BYTES_MIN: Final = 1 << 20


def why_full(directory: Path) -> str:
    """Return in words that the disk of a directory is full, with the way out; empty if it is not.

    What dies of it can rarely say so itself: its log is on the same disk.
    """
    try:
        free_bytes = shutil.disk_usage(directory).free
    except OSError:
        return ""
    if free_bytes >= _FREE_BYTES_MIN:
        return ""
    return f"the disk of {directory} is full; make room or pass --results DIR on another disk"


class HarnessError(Exception):
    """The harness could not do its work (exit code 255)."""


class UsageError(HarnessError):
    """The user asked for something that cannot be (exit code 254): a line for each mistake."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.args))


class NotHereError(UsageError):
    """This machine cannot do what the user asked for; another one, or another user, could."""


class SpecError(UsageError):
    """A value in a scenario cannot be: `path` leads to it, so that its file and line can be named.

    A path is the keys and indices from the top of the document: `("play", 3, "kill")`. With
    `further` mistakes it stands for all of them.
    """

    def __init__(
        self, path: tuple[str | int, ...], message: str, *, further: "Sequence[SpecError]" = ()
    ) -> None:
        self.path = path
        self.message: str = message
        super().__init__(message, *(error.message for error in further))
        self.all: tuple[SpecError, ...] = (self, *further)

    def below(self, *prefix: str | int) -> "SpecError":
        """Return the same error, as seen from further up the document."""
        first, *further = (SpecError((*prefix, *one.path), one.message) for one in self.all)
        return SpecError(first.path, first.message, further=further)


class Mistakes:
    """The SpecErrors of several parts, which are refused together once all parts were read."""

    def __init__(self) -> None:
        self._found: list[SpecError] = []

    def note(self, path: tuple[str | int, ...], message: str) -> None:
        """Add a mistake."""
        self._found.append(SpecError(path, message))

    def add(self, error: SpecError) -> None:
        """Add all that an error stands for."""
        self._found += (SpecError(one.path, one.message) for one in error.all)

    @contextmanager
    def below(self, *prefix: str | int) -> Iterator[None]:
        """Add the mistakes that the block raises, and go on after it."""
        try:
            yield
        except SpecError as error:
            self.add(error.below(*prefix))

    def refuse_after(self, make: Callable[[], T]) -> T:
        """Return the value that `make` returns, if neither it nor anything before was a mistake."""
        with self.below():
            made = make()
        self.refuse()
        return made

    def refuse(self) -> None:
        """Raise SpecError for all of them, if there are any."""
        if self._found:
            first, *further = self._found
            raise SpecError(first.path, first.message, further=further)
