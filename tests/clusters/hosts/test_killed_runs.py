"""The harness killed with -9 in the middle of each kind of fault leaves the machine as it was.

Either its warden sees to that by itself; or, if that was killed as well, `fencepost clean` does.
"""

import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from killed_runs import LiveRun, fencepost, in_the_middle, someone_waits_for_a_disk
from machine_state import differences, dying, held_by, machine_state, of_jvms

from fencepost.clusters.hosts.bandwidth import why_no_limits
from fencepost.clusters.hosts.cgroups.hierarchy import parents
from fencepost.clusters.hosts.disks.image import why_no_disks
from fencepost.clusters.hosts.namespaces import why_no_namespaces
from fencepost.clusters.hosts.packets import why_no_rules
from fencepost.clusters.provision.cache import cache_dir
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import RunState, read_manifest
from fencepost.history.run_directory import RunDirectory

pytestmark = [pytest.mark.alone, pytest.mark.slow]

SCENARIO = """
name: killed-{name}
cluster: {{controllers: 1, brokers: {brokers}{cluster}}}
topics: [{{name: t, replication_factor: 2}}]
workload: {{kind: produce-poll, rate: 50, producers: 1, consumers: 1, consume: assign}}
play:
{play}
  - wait: 10m
time_limit: 10m
"""
RESTORED_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Middle:
    """The middle of which faults. `effects`: how many of the steps are faults."""

    name: str
    play: tuple[str, ...]
    effects: int
    brokers: int = 2
    cluster: str = ""
    options: tuple[str, ...] = ("--cluster", "reference")
    waited_for: bool = False
    """Whether a process waits for its disk, so that SIGKILL does not end it."""
    why_not: Callable[[], str | None] = lambda: None


def why_no_groups() -> str | None:
    try:
        parents()
    except HarnessError as error:
        return str(error)
    return None


def why_no_packets() -> str | None:
    return why_no_namespaces() or why_no_rules() or why_no_limits()


IN_NAMESPACES = Middle(
    name="disks-in-namespaces",
    play=("stall_disk: broker-1", "partition: {isolate: broker-2, by: packets}"),
    effects=2,
    options=("--cluster", "reference", "--host", "netns"),
    waited_for=True,
    why_not=lambda: why_no_packets() or why_no_disks(),
)

# Faults that get on together share a run: each has a node of its own.
MIDDLES = (
    Middle(
        name="processes",
        play=(
            "{snapshot: broker-3, as: old}",
            "partition: {isolate: broker-1}",
            "pause: broker-2",
            "kill: broker-3",
            "wipe: broker-3",
        ),
        effects=4,
        brokers=3,
    ),
    Middle(
        name="broken-disks",
        play=("fill_disk: broker-1", "lock_disk: broker-2", "fail_disk: broker-3"),
        effects=3,
        brokers=3,
        why_not=why_no_disks,
    ),
    Middle(
        name="hard-disks",
        play=("{slow_disk: broker-1, by: 2s}", "cut_power: broker-2", "stall_disk: broker-3"),
        effects=3,
        brokers=3,
        waited_for=True,
        why_not=why_no_disks,
    ),
    Middle(
        name="pressure",
        play=("{throttle: broker-1, cpu: 2%}", "{squeeze: broker-2, room: 4MiB}"),
        effects=2,
        why_not=why_no_groups,
    ),
    Middle(
        name="packets",
        play=(
            "partition: {isolate: broker-1, by: packets}",
            "bandwidth: {of: broker-2, rate: 5Mbit}",
        ),
        effects=2,
        options=("--cluster", "reference", "--host", "netns"),
        why_not=why_no_packets,
    ),
    IN_NAMESPACES,
    pytest.param(
        Middle(
            name="clocks-and-members",
            # Clocks last: a controller whose clock jumps back may let nobody in for a minute.
            play=(
                "add: broker-3",
                "stop: broker-1",
                "{skew: controller-1, jump: -60s}",
                "{skew: broker-3, drift: 1.05}",
                "{skew: broker-2, strobe: 2s}",
            ),
            effects=4,
            cluster=", spare_brokers: 1, kafka: 4.3.1",
            options=(),
        ),
        marks=pytest.mark.kafka,
    ),
    pytest.param(
        Middle(
            name="containers",
            play=(
                "stall_disk: broker-1",
                "pause: broker-2",
                "partition: {from: broker-3, to: controllers, by: packets}",
                "bandwidth: {of: broker-3, rate: 5Mbit}",
            ),
            effects=4,
            brokers=3,
            options=("--host", "docker"),
            waited_for=True,
            why_not=why_no_disks,
        ),
        marks=[pytest.mark.kafka, pytest.mark.docker],
    ),
)


class Place:
    """Where a run of the test's keeps what it writes."""

    def __init__(self, directory: Path) -> None:
        self._scenario, self._results = directory / "scenario.yaml", directory / "results"
        # Short: sockets of the proxy have their names in it, and these have a bound.
        self.temporary = directory / "tmp"
        self.temporary.mkdir(parents=True)

    def in_the_middle_of(self, middle: Middle) -> AbstractContextManager[LiveRun]:
        play = "\n".join(f"  - {step}" for step in middle.play)
        self._scenario.write_text(
            SCENARIO.format(
                name=middle.name, brokers=middle.brokers, cluster=middle.cluster, play=play
            )
        )
        return in_the_middle(
            self._scenario,
            *middle.options,
            effects=middle.effects,
            temporary=self.temporary,
            results=self._results,
        )

    def clean(self) -> "subprocess.CompletedProcess[str]":
        return fencepost("clean", "--results", str(self._results), temporary=self.temporary)


def named(middle: object) -> str | None:
    return middle.name if isinstance(middle, Middle) else None


def by_wardens(middle: Any) -> bool:
    """Whether it is tried what a warden mends by itself; `clean` undoes the same, for all."""
    one = middle if isinstance(middle, Middle) else middle.values[0]
    return one.name in ("processes", "hard-disks", "containers")


@pytest.mark.parametrize("middle", [*filter(by_wardens, MIDDLES)], ids=named)
def test_a_warden_whose_harness_was_killed_leaves_the_machine_as_it_was(
    middle: Middle, until: Callable[..., bool], tmp_path: Path
) -> None:
    the_machine_is_as_it_was(middle, until, tmp_path, warden_too=False)


@pytest.mark.parametrize("middle", MIDDLES, ids=named)
def test_after_harness_and_warden_were_killed_the_machine_is_cleaned(
    middle: Middle, until: Callable[..., bool], tmp_path: Path
) -> None:
    the_machine_is_as_it_was(middle, until, tmp_path, warden_too=True)


def the_machine_is_as_it_was(
    middle: Middle, until: Callable[..., bool], tmp_path: Path, *, warden_too: bool
) -> None:
    if (why := middle.why_not()) is not None:
        pytest.skip(why)
    place = Place(tmp_path)
    # What the test before has killed must not count as the machine's own.
    assert until(lambda: not dying()), dying()
    before = machine_state(place.temporary)

    def left() -> list[str]:
        return differences(before, machine_state(place.temporary))

    with place.in_the_middle_of(middle) as run:
        if middle.waited_for:
            assert until(lambda: someone_waits_for_a_disk(run.root), timeout_s=60)
        pids = run.pids()
        run.kill(warden_too=warden_too)
    if not warden_too:
        assert until(lambda: not left(), timeout_s=RESTORED_WITHIN_S), "\n".join(left())

    cleaned = place.clean()
    assert cleaned.returncode == 0, cleaned.stderr
    assert f"marked {run.root} as failed" in cleaned.stdout
    assert until(lambda: not left()), "\n".join([cleaned.stdout, *left()])
    assert of_jvms(pids) == []
    assert read_manifest(RunDirectory(run.root).manifest_path).state is RunState.FAILED
    assert place.clean().stdout == "nothing was left behind\n"


def test_what_lives_is_left_alone(until: Callable[..., bool], tmp_path: Path) -> None:
    middle = IN_NAMESPACES
    if (why := middle.why_not()) is not None:
        pytest.skip(why)
    mine, others = Place(tmp_path / "a"), Place(tmp_path / "b")
    assert until(lambda: not dying()), dying()
    before = machine_state(mine.temporary)
    with mine.in_the_middle_of(middle) as living:
        [ledger] = cache_dir().glob(f"ledgers/*{living.root.name}-{living.harness.pid}.jsonl")
        pids, deeds = {*living.pids()}, ledger.read_text()
        held = held_by(deeds)
        with others.in_the_middle_of(middle) as doomed:
            assert until(lambda: someone_waits_for_a_disk(doomed.root), timeout_s=60)
            pids &= {*living.pids()}  # without the tools that it calls now and then
            doomed.kill(warden_too=True)
        cleaned = others.clean()
        assert cleaned.returncode == 0, cleaned.stderr
        assert doomed.root.name in cleaned.stdout
        assert living.root.name not in cleaned.stdout
        assert pids <= {*living.pids()}
        assert ledger.read_text() == deeds
        assert held_by(deeds) == held
        assert someone_waits_for_a_disk(living.root)
    assert until(
        lambda: not differences(before, machine_state(mine.temporary)),
        timeout_s=RESTORED_WITHIN_S,
    )
