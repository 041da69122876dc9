"""A kind of workload, as it is known before any of its clients is imported.

A module `workloads/*_spec.py` has the keys that scenarios may state, as a dataclass, and a `KIND`;
the registry finds it there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import BrokersSpec
from fencepost.clusters.port import ClusterSpec
from fencepost.clusters.system import Prepared
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.manifest import Promises
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory

if TYPE_CHECKING:
    from fencepost.workloads.port import Workload  # with numpy


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """The parts with which the workload of a run is built."""

    cluster: Any
    """The cluster of the system that the kind is for."""
    prepared: Prepared
    topics: Sequence[TopicSpec]
    warden: Warden
    run: RunDirectory
    clock: Clock
    seed: int
    first_process: int
    """The first number of its logical clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedSetup:
    """The parts with which it is built in virtual time."""

    cluster: Any
    topics: Sequence[TopicSpec]
    run: RunDirectory
    seed: int
    first_process: int


def _as_it_is(_spec: Any, promises: Promises) -> Promises:
    return promises


def _anywhere(_spec: Any, _cluster: Any, _topics: Sequence[TopicSpec]) -> None:
    """Refuse nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadKind:
    """A kind of workload, by its word under `kind`."""

    word: str
    spec: type[Any]
    module: str
    """It has `build(spec, Setup)`, and is imported when a run of it is set up."""
    simulated: str | None = None
    """A module with `build(spec, SimulatedSetup)`; None: it has no clients in virtual time."""
    for_clusters: type[ClusterSpec] = BrokersSpec
    """The clusters that its clients can talk to."""
    since: str = "0"
    """The first release of the system that understands what its clients ask."""
    beside: bool = False
    """It accompanies a workload that writes and reads records, and has nothing to read back."""
    first_process: int = 0
    """The first number of its logical clients: no other kind in a scenario may have the same
    numbers.
    """
    tables: Callable[[Any], tuple[str, ...]] = lambda _spec: ()
    """The tables of the cluster that it sets out to record."""
    check: Callable[[Any, Any, Sequence[TopicSpec]], None] = _anywhere
    """Raises SpecError for what cannot be on this cluster; no topics: they could not be read."""
    operations: Callable[[Any], Mapping[str, float | None]] = lambda _spec: {}
    """The kinds of operation that its clients set out to do, besides sends, polls and reads, as
    their tables name them; each with the time, s, by which they have long done one if nothing is
    broken, or None if no time is enough to be sure."""
    promised: Callable[[Any, Promises], Promises] = _as_it_is
    """(the workload's spec, the promises without it) → the promises to clients with it."""
    settling_s: Callable[[Any], float] = lambda _spec: 0.0
    """The time for which clients have to go on when everything is healed."""
    model: Model | None = None
    """The model of the objects that its clients use, if they record operations on objects instead
    of records of topics."""
    moves_replicas: bool = False
    """True if any broker may become a replica of a key."""

    def build(self, spec: Any, setup: Setup) -> "Workload":
        """Return the workload of a run, not started yet."""
        built: Workload = import_module(self.module).build(spec, setup)
        return built

    def build_simulated(self, spec: Any, setup: SimulatedSetup) -> "Workload":
        """Return the workload in virtual time, not started yet."""
        assert self.simulated is not None, "refused before"
        built: Workload = import_module(self.simulated).build(spec, setup)
        return built
