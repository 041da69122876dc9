"""A nemesis that is idle for a minute is a shortfall; one that has nothing to do is not."""

import math
import random
from pathlib import Path

import pytest
from interpreter_doubles import Bench

from clusters.port import NodeName
from harness.interpreter.idleness import Idleness
from harness.interpreter.mixing import IDLE_S_MAX, perform_mix
from nemesis.mix import Mix
from nemesis.mix_spec import MixSpec

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
