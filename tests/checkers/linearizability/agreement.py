"""Random small histories judged by a kernel and by brute force, as many as you ask for.

    .venv/bin/python tests/checkers/linearizability/agreement.py --kernel register --count 100000

Ends with the number of histories that are linearizable and that are not, or at the first one on
which the two differ. Histories are those of the seeds 0, 1, …, so a disagreement can be repeated.
"""

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pyarrow as pa
from brute_force import is_linearizable
from object_histories import Flavour, random_rows, table

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.kernels import KERNELS, KeyKernel
from fencepost.checkers.linearizability.operations import columns_of
from fencepost.checkers.linearizability.searched import searched
from fencepost.history.models import Model

BUDGET = Budget(seconds=60.0, bytes=1 << 30)
_AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """A kernel, and what it is tried on."""

    kernel: KeyKernel
    flavours: tuple[Flavour, ...]
    """In turn."""

    def flavour(self, seed: int) -> Flavour:
        """What is drawn from this seed."""
        return self.flavours[seed % len(self.flavours)]


@dataclass(slots=True)
class Tally:
    linearizable_count: int = 0
    wrong_count: int = 0
    proof_count: int = 0

    def __str__(self) -> str:
        total = self.linearizable_count + self.wrong_count
        return (
            f"{total} histories: {self.linearizable_count} linearizable, {self.wrong_count} not, "
            f"{self.proof_count} proofs that are wrong by themselves; no disagreement"
        )


@dataclass(frozen=True, slots=True)
class _Search:
    model: Model

    def __call__(self, key: str, rows: pa.Table, budget: Budget) -> Found:
        return searched(key, columns_of(rows, self.model), model=self.model, budget=budget)


def _equal_adds(*deltas: int) -> tuple[Flavour, ...]:
    return tuple(Flavour(model=Model.COUNTER, deltas=(delta,)) for delta in deltas)


_ADDS = (
    Flavour(model=Model.COUNTER, deltas=(1, 2, 3, 0)),
    Flavour(model=Model.COUNTER, deltas=(2, 3)),
    Flavour(model=Model.COUNTER, deltas=(1, 2, -1, -3)),
)

CONTESTS: Mapping[str, Contest] = {
    "register": Contest(
        kernel=KERNELS[Model.REGISTER], flavours=(Flavour(model=Model.REGISTER, unique=True),)
    ),
    "register-with-swaps": Contest(
        kernel=KERNELS[Model.REGISTER], flavours=(Flavour(model=Model.REGISTER),)
    ),
    "set": Contest(kernel=KERNELS[Model.SET], flavours=(Flavour(model=Model.SET),)),
    "counter": Contest(kernel=KERNELS[Model.COUNTER], flavours=_equal_adds(1, 2, -1)),
    "counter-of-any-adds": Contest(kernel=KERNELS[Model.COUNTER], flavours=_ADDS),
    **{
        f"search-{model}": Contest(kernel=_Search(model), flavours=(Flavour(model=model),))
        for model in KERNELS
    },
}


def contested(contest: Contest, seeds: range) -> Tally:
    """How many histories were which. Raises AssertionError at a disagreement, with its seed."""
    tally = Tally()
    for first in range(seeds.start, seeds.stop, _AT_ONCE):
        some = range(first, min(first + _AT_ONCE, seeds.stop))
        histories = [random_rows(contest.flavour(seed), Random(seed)) for seed in some]
        # One table for many keys, as they stand in a file: each kernel is given a slice of it.
        rows = table([row for history in histories for row in history])
        start = 0
        for seed, history in zip(some, histories, strict=True):
            mine = rows.slice(start, len(history))
            start += len(history)
            _judge(contest, seed, history, mine, tally)
    return tally


def _judge(
    contest: Contest, seed: int, history: list[dict[str, Any]], rows: pa.Table, tally: Tally
) -> None:
    model = contest.flavour(seed).model
    expected = is_linearizable(history, model)
    found = contest.kernel("x", rows, BUDGET)
    assert not found.doubt, (seed, found.doubt)
    assert (found.never_count == 0) == expected, (seed, history)
    tally.linearizable_count += expected
    tally.wrong_count += not expected
    tally.proof_count += _proofs_checked(found, history, model, seed)


def _proofs_checked(found: Found, history: list[dict[str, Any]], model: Model, seed: int) -> int:
    """Each proof names operations that are no linearizable history by themselves."""
    proofs = list(anomalies_of(found.table))
    for anomaly in proofs:
        part = [row for row in history if row["index"] in anomaly.operations]
        assert not is_linearizable(part, model), (seed, anomaly, history)
    return len(proofs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kernel", choices=CONTESTS, action="append")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--first-seed", type=int, default=0)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.count)
    for name in options.kernel or CONTESTS:
        print(f"{name}: {contested(CONTESTS[name], seeds)}", flush=True)  # noqa: T201  # a command


if __name__ == "__main__":
    main()
