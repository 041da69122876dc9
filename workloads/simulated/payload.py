"""The records of a batch in a simulated world: their values, and when they were made."""

from collections.abc import Iterable

__all__ = ["Payload"]


class Payload(tuple[int, ...]):  # noqa: SLOT001  # it has an attribute
    """The values, with the time at which the producer made them; nodes see a plain tuple."""

    made_ns: int

    @classmethod
    def of(cls, values: Iterable[int], made_ns: int) -> "Payload":
        """Return these values, made at this time."""
        found = cls(values)
        found.made_ns = made_ns
        return found
