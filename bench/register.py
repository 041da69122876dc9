"""The operations a second that clients of a ZooKeeper ensemble do and record.

The workload is that of runs, asked for more than it can do, on a warm ensemble without faults.
"""

import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from fencepost.bench.clusters import built
from fencepost.clusters.system import Wanted
from fencepost.clusters.systems import system_of
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.register import RegisterWorkload
from fencepost.workloads.register_spec import RegisterSpec

_RATE: Final = 100_000.0
"""More operations a second than any machine gives."""
_WARM_S: Final = 3.0
_END_S: Final = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterFigures:
    """Operations with an answer a second, of each run, in order."""

    release: str
    servers: int
    clients: int
    in_flight: int
    """The operations that all clients together keep open at most."""
    seconds: int
    """The length of each run, after the first 3 s of its clients."""
    answered_per_s: tuple[float, ...]
    unanswered: int
    """Those that ended without an answer, over all runs: not one, without faults."""

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        rates = self.answered_per_s
        low, middle, high = min(rates), statistics.median(rates), max(rates)
        return [
            f"ZooKeeper {self.release}, {self.servers} servers",
            f"{self.clients} clients with {self.in_flight} operations open",
            f"{len(rates)} runs of {self.seconds} s, after 3 s to get warm",
            "operations a second, recorded: min / median / max",
            f"  {low:,.0f} / {middle:,.0f} / {high:,.0f}; {self.unanswered} without an answer",
        ]


def register_bench(
    *, spec: ZooKeeperSpec, clients: int, runs: int, seconds: int, say: Callable[[str], None]
) -> RegisterFigures:
    """Start an ensemble and measure runs on it; raise HarnessError if something does not start."""
    workload = RegisterSpec(clients=clients, rate=_RATE, pipeline=32)
    make = system_of(spec).makes[0]
    prepared = make.driver.prepare(spec, Wanted(), say)
    rates, unanswered = [], 0
    with built(make, spec, prepared=prepared, name="register") as bench:
        bench.cluster.start()
        for number in range(runs):
            register = RegisterWorkload(
                workload,
                warden=bench.warden,
                servers=tuple(bench.cluster.client_addresses()),
                run=_run_directory(bench.directory / f"run-{number}"),
                clock=bench.clock,
                seed=number,
            )
            rate, lost = _measured(register, seconds)
            rates.append(rate)
            unanswered += lost
            say(f"{rate:,.0f} operations a second")
    return RegisterFigures(
        release=spec.release,
        servers=spec.servers,
        clients=clients,
        in_flight=clients * workload.sessions * workload.pipeline,
        seconds=seconds,
        answered_per_s=tuple(rates),
        unanswered=unanswered,
    )


def _run_directory(root: Path) -> RunDirectory:
    run = RunDirectory(root)
    run.raw.mkdir(parents=True)
    run.clients.mkdir(parents=True)
    return run


def _measured(register: RegisterWorkload, seconds: int) -> tuple[float, int]:
    """Return the answers a second of one run, and how many operations had none in its end."""
    try:
        register.start()
        time.sleep(_WARM_S)
        before, begin_s = _answered(register), time.monotonic()
        time.sleep(seconds)
        rate = (_answered(register) - before) / (time.monotonic() - begin_s)
    finally:
        register.stop(_END_S)
    if failures := register.failures():
        raise HarnessError(failures[0])
    return rate, register.counts().info


def _answered(register: RegisterWorkload) -> int:
    counts = register.counts()
    return counts.ok + counts.fail
