"""The progress of the clients, read from outside while they run.

Every client counts in the header of its first segment; reading one costs an `open` and a `pread`,
whatever the length of the run, so that it can be done many times a second. The counters serve
progress and conditions. Verdicts rest on the slots alone.
"""

import os
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Final

from fencepost.history.segment_format import COUNTERS_AT, MAGIC, ClientCounter, SegmentKind

_COUNTERS: Final = struct.Struct(f"<{len(ClientCounter)}q")
_FIRST: Final = {kind: f"-000000{kind.suffix}" for kind in SegmentKind}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCounts:
    """The counts of one client so far.

    Of a client that never got an ok answer, `last_ok_*` is None.
    """

    invoked: int = 0
    """The number of sends."""
    ok: int = 0
    fail: int = 0
    info: int = 0
    polls: int = 0
    """The number of polls and final reads that returned, whatever their outcome."""
    polled_records: int = 0
    last_ok_send_ns: int | None = None
    last_ok_poll_ns: int | None = None
    """The last ok poll that returned a record; empty ones succeed without a cluster, too."""

    def __add__(self, other: "ClientCounts") -> "ClientCounts":
        return ClientCounts(
            invoked=self.invoked + other.invoked,
            ok=self.ok + other.ok,
            fail=self.fail + other.fail,
            info=self.info + other.info,
            polls=self.polls + other.polls,
            polled_records=self.polled_records + other.polled_records,
            last_ok_send_ns=_later(self.last_ok_send_ns, other.last_ok_send_ns),
            last_ok_poll_ns=_later(self.last_ok_poll_ns, other.last_ok_poll_ns),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts(ClientCounts):
    """The sum over all clients, and each of them by name."""

    by_client: Mapping[str, ClientCounts] = field(default_factory=dict)


def counts_of(by_client: Mapping[str, ClientCounts]) -> Counts:
    """Return the sum over these clients, and each of them."""
    total = sum(by_client.values(), start=ClientCounts())
    summed = {one.name: getattr(total, one.name) for one in fields(total)}
    return Counts(**summed, by_client=by_client)


def live_counts(directory: Path) -> Counts:
    """Return the counts so far of the clients that record into `directory`; if absent, zeros."""
    by_client: dict[str, ClientCounts] = {}
    for client, counts in _clients(directory):
        by_client[client] = by_client.get(client, ClientCounts()) + counts
    return counts_of(by_client)


def _clients(directory: Path) -> Iterator[tuple[str, ClientCounts]]:
    if not directory.is_dir():
        return
    # listdir, not iterdir: a long run has thousands of segments, and this runs many times a second.
    for name in sorted(os.listdir(directory)):  # noqa: PTH208 - as above
        for kind, ending in _FIRST.items():
            if name.endswith(ending):
                yield name.removesuffix(ending), _counts(directory / name, kind)


def _counts(path: Path, kind: SegmentKind) -> ClientCounts:
    try:
        with path.open("rb", buffering=0) as file:
            head = file.read(COUNTERS_AT + _COUNTERS.size)
    except FileNotFoundError:
        return ClientCounts()  # Sealed since it was listed.
    if len(head) < COUNTERS_AT + _COUNTERS.size or not head.startswith(MAGIC):
        return ClientCounts()  # Cut or foreign: the seal says so, progress need not.
    counters = _COUNTERS.unpack_from(head, COUNTERS_AT)
    ok, fail, info = counters[ClientCounter.OK : ClientCounter.INFO + 1]
    last_ok_ns = counters[ClientCounter.LAST_OK_NS] or None
    if kind is SegmentKind.SENDS:
        invoked = counters[ClientCounter.INVOKED]
        return ClientCounts(
            invoked=invoked, ok=ok, fail=fail, info=info, last_ok_send_ns=last_ok_ns
        )
    polled = counters[ClientCounter.POLLED_RECORDS]
    return ClientCounts(polls=ok + fail + info, polled_records=polled, last_ok_poll_ns=last_ok_ns)


def _later(one_ns: int | None, other_ns: int | None) -> int | None:
    known = [time_ns for time_ns in (one_ns, other_ns) if time_ns is not None]
    return max(known, default=None)
