"""The evidence that every recording in virtual time keeps of its cluster, beside its clients'.

A run and a trial that is recorded fill the same tables: when metadata were appended is noted as the
world goes on, what nodes were told and what lies on their disks is written at the end.
"""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final

from fencepost.clusters.node_port.notes import APPENDED_METADATA
from fencepost.clusters.processes.node_tables import write_settings
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.simulation.world import Watcher
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory

ORIGIN_UTC_NS: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
"""The wall clock at the start of every world."""
_S: Final = 1_000_000_000
_YOUNG_MAX: Final = 200_000


Note = tuple[Any, ...]


class SimulatedTime:
    """The world's time: a `harness.timing.Time`, and a clock for journals."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def now_s(self) -> float:
        """Return the seconds of the world."""
        return self._cluster.world.now_ns / _S

    def now_ns(self) -> int:
        """Return the time of the world in ns."""
        return self._cluster.world.now_ns

    def sleep(self, seconds: float) -> None:
        """Let the world go on for this many seconds."""
        self._cluster.run(int(seconds * _S))

    def sleep_until(self, moment_s: float) -> None:
        """Let the world go on until this moment."""
        self._cluster.run(max(0, int(moment_s * _S) - self._cluster.world.now_ns))


class Overheard:
    """A watcher that has `hear` hear each note, and passes everything on, if there is another."""

    def __init__(
        self, hear: Callable[[int, int, Note], None], watcher: Watcher | None = None
    ) -> None:
        self.note: Callable[[int, int, Note], None] = _both(hear, watcher.note) if watcher else hear
        """Hear what a node or a client says became true."""
        self.started: Callable[..., None] = watcher.started if watcher else _unheard
        self.sent: Callable[..., None] = watcher.sent if watcher else _unheard
        self.delivered: Callable[..., None] = watcher.delivered if watcher else _unheard


def _both(
    first: Callable[[int, int, Note], None], second: Callable[[int, int, Note], None]
) -> Callable[[int, int, Note], None]:
    def note(now: int, node: int, note: Note) -> None:
        first(now, node, note)
        second(now, node, note)

    return note


def _unheard(*_: object) -> None:
    pass


def stamps(times: AppendTimes) -> Callable[[int, int, Note], None]:
    """Return what hears when metadata were appended, and notes that."""

    def hear(now: int, _node: int, note: Note) -> None:
        if note[1] == APPENDED_METADATA:
            times.add(now, note[2], note[3])

    return hear


@contextmanager
def few_collections() -> Iterator[None]:
    """A world is a million small values without cycles, which a collector looks at in vain."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG_MAX, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def recorded_tables(
    cluster: SimulatedCluster, *, wired: bool, clients: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the cluster tables that a recording sets out to fill; `clients`: those of clients."""
    taped = ("wire",) if wired else ()
    return tuple(dict.fromkeys((*taped, *cluster.kit.tables, *clients)))


def testify(
    cluster: SimulatedCluster,
    topics: Sequence[str],
    times: AppendTimes,
    *,
    run: RunDirectory,
    say: Callable[[str], None],
) -> Sequence[str]:
    """Write what nodes were told and what their disks hold; return what of these is unreadable.

    Raises HarnessError if a table cannot be written.
    """
    kit = cluster.kit
    told: dict[str, Mapping[str, str]] = {node: kit.settings(node) for node in cluster.nodes}
    write_settings(run.raw, told, cluster.setting_changes())
    try:
        report = kit.write_witness(cluster.disks, run.raw, topics=topics, times=times)
    except OSError as error:
        raise HarnessError(f"cannot write what the disks hold in {run.raw}: {error}") from error
    say(report.summary)
    return report.damaged
