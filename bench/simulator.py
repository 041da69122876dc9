"""The speed of the simulator: events and virtual seconds a second of a core, and its parts' shares.

Time is that of cores (CPU), since these are shared with other work on the machine. A section does
the same work in every repetition, from the same seeds, so that repetitions differ by noise alone:
the maximum is nearest to a quiet machine. The shares come from samples of the running code, taken
as the process uses the processor: shares of a hundred samples say little, of a thousand enough.
"""

import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Final

from fencepost.bench.measuring import spread
from fencepost.clusters.compiled import is_compiled
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.systems import SIMULATED
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.progress import Status
from fencepost.harness.run.run import record_scenario
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import TrialPlan, drawn_plan
from fencepost.harness.trials.trial import run_trial
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import read_manifest
from fencepost.history.program import IMPORT_ROOT
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec

_TRIALS: Final = range(1, 31)
_SAMPLE_S: Final = 0.002
"""The interval of samples. Kernels look at these timers once a tick of theirs, every 4 ms on most
machines.
"""
_ROOT: Final = IMPORT_ROOT / "fencepost"
_PARTS: Final[Mapping[str, str]] = {
    "clusters/simulation/world.py": "loop of events",
    "clusters/simulation/": "network, disks, clocks",
    "clusters/reference/oracle/": "oracle",
    "clusters/reference/nodes/quorum/": "quorum",
    "clusters/reference/nodes/control": "controllers",
    "clusters/reference/simulated/witness.py": "reading the disks",
    "clusters/reference/simulated/observing.py": "observer",
    "clusters/reference/simulated/notebook.py": "observer",
    "clusters/reference/nodes/serving/": "brokers: clients",
    "clusters/reference/nodes/replicas/": "brokers: replicas",
    "clusters/": "brokers: the rest",
    "workloads/": "clients",
    "nemesis/simulated/": "wire and tape",
    "nemesis/wire/": "wire and tape",
    "nemesis/": "schedules",
    "history/": "recorder",
    "harness/": "harness",
}
"""The parts by the beginning of the file of the innermost frame of ours; the first that fits."""
_ELSEWHERE: Final = "elsewhere"


Work = Callable[[], tuple[int, float]]
"""The work of one repetition; returns (events, virtual seconds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionFigures:
    """The figures of one section: the same work, several times."""

    name: str
    event_count: int
    virtual_s: float
    cpu_s: tuple[float, ...]
    """The CPU time of each repetition, in order."""
    shares: Mapping[str, float]
    """The shares of the time, by part, the largest first; not known of a compiled simulator."""
    sample_count: int

    @property
    def events_per_s(self) -> tuple[float, ...]:
        """A second of a core, of each repetition."""
        return tuple(self.event_count / one for one in self.cpu_s)

    @property
    def speeds(self) -> tuple[float, ...]:
        """The virtual seconds a second of a core, of each repetition."""
        return tuple(self.virtual_s / one for one in self.cpu_s)

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {
            "section": self.name,
            "event_count": self.event_count,
            "virtual_s": self.virtual_s,
            "cpu_s": self.cpu_s,
            "events_per_s": self.events_per_s,
            "virtual_s_per_s": self.speeds,
            "shares": dict(self.shares),
            "sample_count": self.sample_count,
        }

    def lines(self) -> Iterator[str]:
        """Yield the figures as lines of text."""
        rates, speeds = spread(self.events_per_s, ",.0f"), spread(self.speeds, ".0f")
        yield f"{self.name}: {self.event_count:,} events, {self.virtual_s:.0f} virtual s"
        yield f"  events a core-second     {rates}"
        yield f"  virtual s a core-second  {speeds}"
        shares = ", ".join(f"{part} {share:.0%}" for part, share in self.shares.items())
        if shares:
            yield f"  {self.sample_count} samples: {shares}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorFigures:
    """The figures of all sections, in order."""

    sections: tuple[SectionFigures, ...]
    compiled: bool

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {"compiled": self.compiled, "sections": [one.as_data() for one in self.sections]}

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        count = len(self.sections[0].cpu_s)
        how = "compiled" if self.compiled else "plain Python"
        found = [f"{count} repetitions, {how}: min / median / max"]
        return found + [line for one in self.sections for line in one.lines()]


def simulator_bench(
    *, only: Sequence[str], runs: int, say: Callable[[str], None] = lambda _: None
) -> SimulatorFigures:
    """Measure these sections; raise HarnessError if a trial finds something or fails."""
    found = []
    for name in only:
        figures = _measured(name, SECTIONS[name], runs)
        say(f"{name}: {max(figures.events_per_s):,.0f} events a core-second at best")
        found.append(figures)
    return SimulatorFigures(sections=tuple(found), compiled=is_compiled())


def _measured(name: str, work: Work, runs: int) -> SectionFigures:
    work()  # what is imported, compiled or cached on the way is no part of the figures
    counts: set[tuple[int, float]] = set()
    cpu_s: list[float] = []
    with _sampled() as samples:
        for _ in range(runs):
            begin_s = time.process_time()
            counts.add(work())
            cpu_s.append(time.process_time() - begin_s)
    if len(counts) > 1:
        raise HarnessError(f"{name}: the same seeds gave several worlds: {sorted(counts)}")
    [(event_count, virtual_s)] = counts
    if is_compiled():
        samples.clear()  # most of it has no frames, and would count for what calls it
    total = max(1, samples.total())
    return SectionFigures(
        name=name,
        event_count=event_count,
        virtual_s=virtual_s,
        cpu_s=tuple(cpu_s),
        shares={part: count / total for part, count in samples.most_common()},
        sample_count=samples.total(),
    )


def _trials() -> tuple[int, float]:
    return _added(drawn_plan(seed) for seed in _TRIALS)


def _control_plane() -> tuple[int, float]:
    return _added([_quiet_plan(seed) for seed in (1, 2)])


def _added(plans: Iterator[TrialPlan] | Sequence[TrialPlan]) -> tuple[int, float]:
    event_count, virtual_ns = 0, 0
    for plan in plans:
        result = run_trial(plan, Rules())
        if result.crash or result.findings:
            raise HarnessError(f"seed {plan.seed}: {result.crash or result.findings[0].words}")
        event_count += result.event_count
        virtual_ns += result.virtual_ns
    return event_count, virtual_ns / 1e9


def _quiet_plan(seed: int) -> TrialPlan:
    """Return a plan: three controllers, three brokers, faults, changes of metadata; few records."""
    replicas = ((1, 2, 3), (2, 3, 1), (3, 1, 2))
    return TrialPlan(
        seed=seed,
        cluster=KafkaSpec(controllers=3, brokers=3),
        topics=(TopicSpec(name="t", assignment=replicas, settings={"min.insync.replicas": "2"}),),
        records=ProducePollSpec(producers=1, consumers=1, rate=5, consume=Consume.ASSIGN),
        storm=Storm.MIX,
        mix=MixSpec(
            faults=("kill", "pause", "restart"),
            targets=("one broker", "leader", "active controller"),
            gap_s=(2.0, 4.0),
            duration_s=(3.0, 6.0),
        ),
        faults_s=60.0,
    )


def _recorded() -> tuple[int, float]:
    """The default scenario as `fencepost run smoke --cluster simulated` records it, unjudged."""
    scenario = load_scenario(find_scenario("smoke"), [])
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as directory:
        options = RunOptions(results=Path(directory), seed=1, command="", cluster=SIMULATED)
        run = record_scenario(scenario, options, _Silent())
        versions = read_manifest(run.manifest_path).versions
    return int(versions["events"]), float(versions["virtual_s"])


SECTIONS: Final[Mapping[str, Work]] = {
    "trials": _trials,
    "recorded": _recorded,
    "control-plane": _control_plane,
}
"""Trials with the oracle; the scenario smoke, recorded; a cluster with hardly a record."""


class _Silent:
    """A progress display that shows nothing."""

    def say(self, line: str) -> None:
        """Forget it."""

    def live(self, line: str) -> None:
        """Forget it."""

    def show(self, status: Status) -> None:
        """Forget it."""

    def elapsed_s(self) -> float:
        """Return 0: it does not measure the time."""
        return 0.0


@contextmanager
def _sampled() -> Iterator[Counter[str]]:
    """Count which part runs, as the process uses the processor."""
    samples: Counter[str] = Counter()

    def look(_signal: int, frame: FrameType | None) -> None:
        samples[_part(frame)] += 1

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, _SAMPLE_S, _SAMPLE_S)
    try:
        yield samples
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _part(frame: FrameType | None) -> str:
    """Return the part of the innermost frame of ours: a library's work is its caller's."""
    while frame is not None:
        part = _part_of(frame.f_code.co_filename)
        if part is not None:
            return part
        frame = frame.f_back
    return _ELSEWHERE


@cache
def _part_of(filename: str) -> str | None:
    """Return the part of a file, None for a library's. Cached: a look-up costs measured time."""
    path = Path(filename)
    if not path.is_relative_to(_ROOT):
        return None
    name = path.relative_to(_ROOT).as_posix()
    return next((part for start, part in _PARTS.items() if name.startswith(start)), None)
