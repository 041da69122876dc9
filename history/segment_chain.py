"""The segments that one recorder fills, one after the other."""

import fcntl
import os
import re
from pathlib import Path
from typing import Final

from fencepost.history.segment_format import (
    ClientCounter,
    MappedSegment,
    SegmentLayout,
    create_segment,
)

_CLIENT_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_PROCESS_MAX: Final = 1 << 22


class SegmentChain:
    """The segments of one recorder: makes the next one, counts in the first, locks while it lives.

    The lock (flock on the first segment) dies with the process, however that dies: it tells the
    seal whether a recording is still being written.
    """

    def __init__(self, directory: Path, layout: SegmentLayout) -> None:
        assert _CLIENT_NAME.fullmatch(layout.client), f"client name {layout.client!r}"
        assert 0 <= layout.process < _PROCESS_MAX, f"process {layout.process}"
        assert len(set(layout.keys)) == len(layout.keys), f"keys repeat: {layout.keys}"
        self._directory = directory
        self._layout = layout
        self._ordinal = 0
        self._counters: memoryview | None = None
        self._lock: int | None = None

    def next(self, first_sequence: int) -> MappedSegment:
        """Return the next segment, mapped."""
        segment, descriptor = create_segment(
            self._directory, self._layout, ordinal=self._ordinal, first_sequence=first_sequence
        )
        self._ordinal += 1
        if self._counters is None:
            self._lock, self._counters = descriptor, segment.counters
        else:
            os.close(descriptor)
        return segment

    def count(self, counter: ClientCounter, by: int) -> None:
        """Add to one of the client's counters."""
        assert self._counters is not None, "no segment yet"
        self._counters[counter] += by

    def note(self, counter: ClientCounter, value: int) -> None:
        """Set one of the client's counters."""
        assert self._counters is not None, "no segment yet"
        self._counters[counter] = value

    def close(self) -> None:
        """Give up the lock.

        It has to be explicit: the mapping holds a duplicate of the descriptor.
        """
        if self._lock is not None:
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = None
