"""A nemesis that is idle for a minute is a shortfall, as is a step that fails; neither ends it."""

import math
import random
from pathlib import Path

import pytest
from fake_cluster import FakeCluster
from interpreter_doubles import Bench

from fencepost.clusters.port import NodeName
from fencepost.harness.interpreter.idleness import Idleness
from fencepost.harness.interpreter.mixing import FAILURES_MAX, IDLE_S_MAX, perform_mix
from fencepost.history.failure import HarnessError
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec

ONE_BROKER = MixSpec(
    faults=("kill",), targets=("one broker",), gap_s=(1.0, 1.0), duration_s=(1.0, 1.0)
)


class QuickTime:
    """Time that passes as soon as it is waited for."""

    def __init__(self, now_s: float) -> None:
        self._now_s = now_s

    def now_s(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self._now_s += seconds

    def sleep_until(self, moment_s: float) -> None:
        self._now_s = max(self._now_s, moment_s)


def performed(
    directory: Path, spec: MixSpec, *, seconds: float, fenced: bool = False
) -> tuple[Idleness, list[str], list[str]]:
    """Return how idle it was, the shortfalls and the calls; of a cluster that recovers, or not."""
    b = Bench(directory)
    with b.observer:
        b.interpreter.time = QuickTime(b.interpreter.time.now_s())
        if fenced:
            b.cluster.fenced.add(NodeName("broker-2"))
        b.observer.next_look(timeout_s=5.0)
        mix = Mix(spec, random.Random(1), ("t-0",))
        idleness = perform_mix(b.interpreter, mix, time_limit_s=seconds, recovery_s=math.inf)
        return idleness, b.interpreter.shortfalls, b.cluster.calls


def test_a_minute_in_which_nothing_is_broken_though_something_is_due_is_a_shortfall(
    tmp_path: Path,
) -> None:
    idleness, shortfalls, calls = performed(
        tmp_path, ONE_BROKER, seconds=IDLE_S_MAX + 1, fenced=True
    )
    assert not calls
    (shortfall,) = shortfalls
    assert shortfall.startswith("nothing was broken for 6")
    assert shortfall.endswith("the nemesis waited for recovery: broker-2")
    assert idleness.longest.words == "recovery: broker-2"


@pytest.mark.parametrize(
    ("spec", "seconds", "fenced"),
    [
        pytest.param(ONE_BROKER, IDLE_S_MAX - 1, True, id="a little less"),
        pytest.param(
            MixSpec(faults=("kill",), gap_s=(300.0, 300.0)), 240.0, False, id="a long gap"
        ),
        pytest.param(
            MixSpec(faults=("kill",), gap_s=(0.0, 0.0), duration_s=(300.0, 300.0)),
            240.0,
            False,
            id="a long fault",
        ),
        pytest.param(
            MixSpec(faults=("delay",), gap_s=(0.0, 0.0), duration_s=(300.0, 300.0)),
            240.0,
            False,
            id="a long fault that meets nothing",
        ),
    ],
)
def test_a_nemesis_that_has_nothing_to_do_is_no_shortfall(
    tmp_path: Path, spec: MixSpec, seconds: float, *, fenced: bool
) -> None:
    assert performed(tmp_path, spec, seconds=seconds, fenced=fenced)[1] == []


class Tough(FakeCluster):
    """Its nodes survive so many kills."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    def kill_node(self, node: NodeName) -> None:
        if self.failures:
            self.failures -= 1
            raise HarnessError(f"{node}: it runs on")
        super().kill_node(node)


def struck(directory: Path, kind: str, *, failures: int) -> Bench:
    """Return a bench on which a mix of this kind was performed for a while."""
    b = Bench(directory, cluster=Tough(failures))
    spec = MixSpec(faults=(kind,), targets=("one broker",), gap_s=(1.0, 1.0), duration_s=(1.0, 1.0))
    with b.observer:
        b.interpreter.time = QuickTime(b.interpreter.time.now_s())
        b.observer.next_look(timeout_s=5.0)
        perform_mix(b.interpreter, Mix(spec, random.Random(1), ("t-0",)), time_limit_s=60.0)
    return b


def test_a_step_that_fails_is_told_and_healed_and_ends_no_mix(tmp_path: Path) -> None:
    b = struck(tmp_path, "kill", failures=2)
    told = b.interpreter.shortfalls
    assert len(told) == 2
    assert told[0].startswith("a step of the nemesis failed at 1.")
    assert told[0].endswith(": it runs on")
    assert "{'kill': 'broker-" in told[0]
    rows = b.faults().to_pylist()
    in_vain = [row["effect_ns"] is None for row in rows]
    assert in_vain[:2] == [True, True]
    assert not any(in_vain[2:])
    assert len(rows) > 2
    failed = [row for row in rows if row["effect_ns"] is None]
    assert {row["heal_evidence"] for row in failed} == {"a step failed, and its nodes were healed"}
    assert all(row["end_ns"] is not None for row in failed)
    assert not b.network.is_broken


def test_a_disk_whose_loss_did_not_come_about_holds_nothing_up(tmp_path: Path) -> None:
    b = struck(tmp_path, "wipe", failures=1)
    (told,) = [words for words in b.interpreter.shortfalls if "failed" in words]
    assert told.endswith(": it runs on")
    assert any(call.startswith("wipe") for call in b.cluster.calls)


def test_too_many_steps_that_fail_end_the_mix_and_say_so(tmp_path: Path) -> None:
    told = struck(tmp_path, "kill", failures=1_000).interpreter.shortfalls
    assert len(told) == FAILURES_MAX + 2
    assert all(words.startswith("a step of the nemesis failed at ") for words in told[:-1])
    assert told[-1].startswith("the nemesis ended at ")
    assert told[-1].endswith(f" s: {FAILURES_MAX + 1} of its steps had failed")
