"""The errors that end a run, each with one line a user can act on.

Three kinds of error are never mixed: a broken assumption of ours is an `assert`; an answer of the
system under test is data; everything that stops a run is one of these, and its message says what
was expected, what was found, where, and the way out.
"""

__all__ = ["HarnessError", "SpecError", "UsageError"]


class HarnessError(Exception):
    """The harness could not do its work (exit code 255)."""


class UsageError(HarnessError):
    """The user asked for something that cannot be (exit code 254)."""


class SpecError(UsageError):
    """A value in a scenario cannot be: `path` leads to it, so that its file and line can be named.

    A path is the keys and indices from the top of the document: `("play", 3, "kill")`.
    """

    def __init__(self, path: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.path = path
        self.message = message

    def below(self, *prefix: str | int) -> "SpecError":
        """The same error, as seen from further up the document."""
        return SpecError((*prefix, *self.path), self.message)
