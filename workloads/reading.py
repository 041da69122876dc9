"""Readers that go on from each other, by the numbers that a workload gives its clients."""

from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.history.manifest import Readers

FINAL_READERS_MAX: Final = 2
"""The number of final readers: one a core of a small machine; a reader takes in about 150 000
records a second.
"""
POLL_RECORDS_MAX: Final = 5000
"""The most records that a poll of a consumer returns."""
_RESET: Final = "auto.offset.reset"
_TO_BEGINNING: Final = ("earliest", "beginning", "smallest")


def readers_of(
    processes: Mapping[str, Sequence[int]],
    *,
    stride: int,
    poll_max: int,
    settings: Mapping[str, str],
) -> tuple[Readers, ...]:
    """Return the readers by name; none if these settings send consumers to the end of a log."""
    resets = [value for name, value in settings.items() if name.endswith(_RESET)]
    if any(value not in _TO_BEGINNING for value in resets):
        return ()
    return tuple(
        Readers(name=name, processes=tuple(members), stride=stride, poll_max=poll_max)
        for name, members in processes.items()
        if members
    )
