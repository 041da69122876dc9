"""A check of the data plane: a kernel of one key's log."""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.checkers.anomaly import Found
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.entry import CatalogueEntry

Kernel = Callable[[KeyLog], Found]


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCheck:
    """A check by its entry and its kernel."""

    entry: CatalogueEntry
    kernel: Kernel
    by_place: bool = False
    """It compares a record with what stands at its offset or comes before it; the others compare
    it with all records of its value (`checkers.data_plane.large.segment`)."""
    doubt: Callable[[str, int], str] | None = None
    """The doubt of a whole key, from the key and the sum of what the doubts of its parts count. By
    default it is the doubt of the first part.
    """
