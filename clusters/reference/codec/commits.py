"""Commits of groups' offsets as record batches, so that their log holds bytes like any other."""

import json
from collections.abc import Callable
from typing import Any

from clusters.protocol.record_batches import Stop, batch_at
from clusters.reference.codec.small_batches import entries_in, made_batch

__all__ = ["CommitRecords"]


class CommitRecords:
    """A `serving.groups.CommitCodec`: a batch of one record, whose key is the group.

    `time_ms`: the time since 1970 at each call.
    """

    def __init__(self, time_ms: Callable[[], int]) -> None:
        self._time_ms = time_ms

    def encode(self, commit: tuple[str, tuple[tuple[str, int, int, int, str], ...]]) -> Any:
        """The bytes of a batch that has no offset yet."""
        group, offsets = commit
        entry = (group.encode(), json.dumps(offsets, separators=(",", ":")).encode())
        return made_batch(0, -1, [entry], time_ms=self._time_ms())

    def decode(self, payload: Any) -> tuple[str, tuple[tuple[str, int, int, int, str], ...]]:
        """The commit in such bytes."""
        header = batch_at(payload, 0)
        assert not isinstance(header, Stop), header
        ((group, offsets),) = entries_in(payload, header)
        stated = json.loads(offsets or b"[]")
        return (group or b"").decode(), tuple(tuple(one) for one in stated)
