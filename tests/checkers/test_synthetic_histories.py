"""What is planted in a larger good history is found, and nothing else is reported."""

import pytest
from histories import History
from judging import allowed, doubts, never, summary

from fencepost.generators.draft import LIES, HistoryRecipe
from fencepost.generators.kafka import SyntheticRun, manifest_of, synthetic_history
from fencepost.history.manifest import Readers

pytestmark = pytest.mark.slow


def _past(made: SyntheticRun) -> History:
    return History(operations=made.operations, records=made.records)


def _readers(recipe: HistoryRecipe) -> tuple[Readers, ...]:
    promises = manifest_of(recipe, end_ns=0).promises
    assert promises is not None
    return promises.readers


@pytest.mark.parametrize("seed", range(3))
def test_a_good_history_raises_nothing(seed: int) -> None:
    recipe = HistoryRecipe(sends=3000, seed=seed, crash_rate=0.05)
    past = _past(synthetic_history(recipe))
    assert not never(past, readers=_readers(recipe))
    assert not doubts(past)
    sums = summary(past.operations, parts=3)
    assert not sums.gap
    assert not sums.overlap


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lie", LIES)
def test_a_planted_lie_is_found_and_nothing_else_is_reported(lie: str, seed: int) -> None:
    recipe = HistoryRecipe(sends=3000, seed=seed, lies=(lie,))
    made = synthetic_history(recipe)
    assert set(never(_past(made), readers=_readers(recipe))) == made.raises
    assert lie in made.raises


@pytest.mark.parametrize("lie", ["duplicate", "nonmonotonic-send"])
def test_what_only_idempotence_forbids_is_allowed_without_it(lie: str) -> None:
    past = _past(synthetic_history(HistoryRecipe(sends=3000, lies=(lie,))))
    assert not never(past, idempotent=False)
    assert set(allowed(past, idempotent=False)) == {lie}


def test_the_same_recipe_makes_the_same_history() -> None:
    recipe = HistoryRecipe(sends=500, lies=("skipped-poll",))
    first, second = synthetic_history(recipe), synthetic_history(recipe)
    assert first.records.equals(second.records)
    assert first.operations.equals(second.operations)
    assert not first.records.equals(synthetic_history(HistoryRecipe(sends=500, seed=1)).records)
