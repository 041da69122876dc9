"""The records of a batch in a simulated world: their values, and when they were made."""

from array import array
from collections.abc import Iterable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    _Values = array[int]
else:
    _Values = array  # has no parameters before Python 3.12


class Payload(_Values):
    """The values, with the time at which the producer made them; nodes see a plain sequence.

    A night has millions of them, on all disks: each takes half the room of a tuple of integers.
    """

    __slots__ = ("made_ns",)
    made_ns: int

    @classmethod
    def of(cls, values: Iterable[int], made_ns: int) -> Self:
        """Return these values, made at this time."""
        found = cls("q", values)
        found.made_ns = made_ns
        return found
