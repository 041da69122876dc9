"""The graph says what trying every order says.

By hand, with any number of histories, from the root of the checkout:
`python tests/checkers/cycles/test_cycles_are_exact.py 100000`.
"""

import sys
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

import pytest
from brute_force_orders import (
    Transaction,
    is_serializable,
    is_snapshot,
    random_history,
    table_of,
)
from hypothesis import settings

from fencepost.checkers.cycles.inference import inferred
from fencepost.checkers.cycles.judgement import cycles_in
from fencepost.checkers.cycles.levels import is_forbidden, level_of_cycle
from fencepost.history.models import Isolation

pytestmark = pytest.mark.slow

_BATCH = 100
_SNAPSHOTS = 5
"""Snapshots of a history that is serializable are tried in one of this many."""


def levels(histories: Sequence[Sequence[Transaction]]) -> list[set[Isolation]]:
    """Of each history, the levels that the checks say are broken; all are judged at once."""
    found: list[set[Isolation]] = [set() for _ in histories]
    part = inferred(table_of(*histories))
    assert not part.doubts
    for kind in part.list_anomalies:
        assert not kind.unspelled
        for oddity in kind.spelled:
            found[int(oddity.key.partition(":")[0])].add(oddity.level)
    first = list(accumulate(map(len, histories), initial=0))
    cycles = cycles_in([part], promise=Isolation.STRICT_SERIALIZABLE)
    assert not cycles.unspelled
    for cycle in cycles.spelled:
        owners = {bisect_right(first, link.source) - 1 for link in cycle.links}
        (owner,) = owners
        found[owner].add(level_of_cycle(cycle.kind, plain=cycle.plain))
    return found


def disagreement(seed: int, broken: set[Isolation], outcomes: Counter[str]) -> str:
    """What the checks say that trying orders does not, or the other way round; or nothing."""
    whole = seed % 2 == 0
    history = random_history(seed, final_reads=whole)
    strict = is_serializable(history, strict=True)
    serializable = strict or is_serializable(history, strict=False)
    said = {promise: _forbidden(broken, promise) for promise in Isolation}
    outcomes["strict-serializable" if strict else "serializable" if serializable else "not"] += 1
    if said[Isolation.STRICT_SERIALIZABLE] == strict:
        return f"strict-serializable is {strict}"
    if said[Isolation.SERIALIZABLE] == serializable:
        return f"serializable is {serializable}"
    if serializable and seed % _SNAPSHOTS:
        return ""
    snapshot = is_snapshot(history)
    outcomes["snapshot" if snapshot else "no snapshot"] += 1
    # Where appends were not read, an order of theirs that no snapshot explains may go unnoticed.
    if said[Isolation.SNAPSHOT] == snapshot and (whole or snapshot):
        return f"snapshot is {snapshot}"
    return ""


def _forbidden(broken: set[Isolation], promise: Isolation) -> bool:
    return any(is_forbidden(level, promise=promise) for level in broken)


def compare(seeds: range) -> Counter[str]:
    """Compare this many; how many were what. Raises AssertionError with the seed that differs."""
    outcomes: Counter[str] = Counter()
    for start in range(seeds.start, seeds.stop, _BATCH):
        batch = range(start, min(start + _BATCH, seeds.stop))
        histories = [random_history(seed, final_reads=seed % 2 == 0) for seed in batch]
        for seed, broken in zip(batch, levels(histories), strict=True):
            wrong = disagreement(seed, broken, outcomes)
            assert not wrong, f"seed {seed}: {wrong}, and the checks say {sorted(broken)}"
    return outcomes


def test_small_histories_are_judged_as_trying_all_orders_judges_them(fuzz_seeds: range) -> None:
    seeds = fuzz_seeds[: 30 * settings().max_examples]
    outcomes = compare(seeds)
    assert min(outcomes["strict-serializable"], outcomes["not"]) > len(seeds) // 10
    assert outcomes["serializable"] > len(seeds) // 100
    assert outcomes["no snapshot"] > len(seeds) // 30


if __name__ == "__main__":
    print(compare(range(int(sys.argv[1]))))  # noqa: T201  # its answer
