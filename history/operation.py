"""The functions and outcomes of operations, apart from the tables, which clients need not load."""

from enum import StrEnum
from typing import Final

FETCH_OFFSETS: Final = "fetch-offsets"
"""A transactional producer asks for the committed offsets of its group."""
SEND_OFFSETS: Final = "send-offsets"
"""It sends new ones with a transaction."""


class Outcome(StrEnum):
    """The outcome of an operation."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"

    @property
    def code(self) -> int:
        """The number in raw segments and arrays: 0 ok, 1 fail, 2 info."""
        return _OUTCOME_CODES[self]


_OUTCOME_CODES: Final = {outcome: code for code, outcome in enumerate(Outcome)}


class F(StrEnum):
    """The function of an operation (Jepsen's `:f`)."""

    SEND = "send"
    POLL = "poll"
    FINAL_READ = "final-read"
    """Reads one key from its first to its last offset after healing; ok only if it got there."""

    @property
    def code(self) -> int:
        """The number in raw segments and arrays: 0 send, 1 poll, 2 final-read."""
        return _F_CODES[self]


_F_CODES: Final = {f: code for code, f in enumerate(F)}
