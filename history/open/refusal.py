"""The refusal of a malformed history: file, line, what was expected, what was found."""

from collections.abc import Iterator
from contextlib import contextmanager

from fencepost.history.failure import UsageError

_SHOWN_MAX = 120


class BadLineError(Exception):
    """An error in a line: one sentence, without the place."""


class MalformedHistoryError(UsageError):
    """A history that is not one: `file:line: expected …; found …`."""

    def __init__(self, source: str, line: int, message: str) -> None:
        super().__init__(f"{source}:{line}: {message}")
        self.line = line


@contextmanager
def at_line(source: str, line: int) -> Iterator[None]:
    """Say of what is refused inside in which line of which file it stands."""
    try:
        yield
    except BadLineError as error:
        raise MalformedHistoryError(source, line, str(error)) from None


def shown(value: object) -> str:
    """Return a value as a message shows it: short."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"
