"""The one exception of a failed run: what went wrong, where, and the way out.

Three kinds of error are never mixed: a broken assumption of ours is an `assert`; an answer of the
system under test is data; everything that stops a run is one of the two below, and its message is
one line a user can act on.
"""

__all__ = ["HarnessError", "UsageError"]


class HarnessError(Exception):
    """The harness could not do its work (exit code 255): the message says where and what to do."""


class UsageError(HarnessError):
    """The user asked for something that cannot be (exit code 254): names the place and the words
    that are allowed."""
