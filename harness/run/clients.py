"""The workloads of a scenario, built from what it says of its clients.

A scenario has one workload that writes and reads records, and may have others beside it: one that
creates, changes and describes topics, one that moves the partitions of the run's own. Together they
are started, stopped and asked as one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.seeds import stream_seed
from fencepost.harness.timing import RealTime, Time
from fencepost.history.counts import Counts
from fencepost.history.manifest import Promises
from fencepost.nemesis.clients import ControlsClients
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.port import HasProcesses, Workload
from fencepost.workloads.registry import kind_of


@dataclass(slots=True, kw_only=True)
class Together:
    """Several workloads as one; what is asked of records is the first one's."""

    first: Workload
    beside: tuple[Workload, ...] = ()
    time: Time = field(default_factory=RealTime)
    started: bool = False

    @property
    def promises(self) -> Promises:
        """The promises to the clients of the first one."""
        return self.first.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys that the first one writes to and reads."""
        return self.first.keys

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes of all."""
        return {name: pid for one in self._all for name, pid in one.pids.items()}

    @property
    def clients(self) -> ControlsClients | None:
        """The first one's client processes; None: it has none."""
        return self.first.clients if isinstance(self.first, HasProcesses) else None

    def start(self) -> None:
        """Start all, one after the other, unless they have been started."""
        if not self.started:
            self.started = True
            for one in self._all:
                one.start()

    def stop(self, timeout_s: float) -> None:
        """Stop all within the bound; those beside first, which take little of it."""
        deadline_s = self.time.now_s() + timeout_s
        for one in reversed(self._all):
            one.stop(max(0.0, deadline_s - self.time.now_s()))

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Have the first one read everything back, and return its result."""
        return self.first.final_read(timeout_s)

    def counts(self) -> Counts:
        """Return the counts of the first one's clients."""
        return self.first.counts()

    def failures(self) -> tuple[str, ...]:
        """Return the clients of any workload that ended on their own."""
        return tuple(words for one in self._all for words in one.failures())

    @property
    def _all(self) -> Sequence[Workload]:
        return (self.first, *self.beside)


def tables_of(scenario: Scenario) -> tuple[str, ...]:
    """Return the tables of the cluster that the scenario's clients set out to record."""
    tables = (kind_of(spec).tables(spec) for spec in scenario.workloads)
    return tuple(dict.fromkeys(chain.from_iterable(tables)))


def model_of(scenario: Scenario) -> str:
    """Return the model of the objects that the scenario's clients use; empty: they use topics."""
    models = [kind_of(spec).model for spec in scenario.workloads]
    return next((str(model) for model in models if model is not None), "")


Build = Callable[[WorkloadKind, Any, int], Workload]
"""A function that makes a workload from its kind, the scenario's spec of it, and a seed."""


def together(scenario: Scenario, build: Build, *, seed: int, time: Time) -> Together:
    """Return the clients of a scenario, not started yet."""

    def built(spec: Any) -> Workload:
        kind = kind_of(spec)
        return build(kind, spec, stream_seed(seed, kind.word if kind.beside else "workload"))

    first, *beside = map(built, scenario.workloads)
    return Together(first=first, beside=tuple(beside), time=time)
