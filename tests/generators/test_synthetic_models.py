"""Made-up histories of objects: right unless a lie is told, and then found to be wrong."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.checkers.anomaly import Found
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.kernels import KERNELS
from fencepost.generators.model_lies import MODEL_LIES
from fencepost.generators.models import ModelRecipe, model_pieces, model_table
from fencepost.generators.objects import FS
from fencepost.history.models import Model

pytestmark = pytest.mark.slow

BUDGET = Budget(seconds=60, bytes=1 << 30)
MODELS = st.sampled_from(list(FS))
LIES = [(model, lie) for model, lies in MODEL_LIES.items() for lie in lies]


def judged(table: pa.Table, model: Model) -> dict[str, Found]:
    names = pc.unique(table["key"]).to_pylist()
    return {
        name: KERNELS[model](name, table.filter(pc.equal(table["key"], name)), BUDGET)
        for name in names
    }


@settings(max_examples=3 * settings().max_examples // 5)
@given(
    model=MODELS,
    operations=st.integers(1, 120),
    keys=st.integers(1, 4),
    clients=st.integers(1, 8),
    crash_rate=st.sampled_from([0, 0.02, 0.3]),
    piece_operations=st.sampled_from([7, 1 << 18]),
    seed=st.integers(0, 2**32),
)
def test_without_lies_every_key_is_right(
    *,
    model: Model,
    operations: int,
    keys: int,
    clients: int,
    crash_rate: float,
    piece_operations: int,
    seed: int,
) -> None:
    recipe = ModelRecipe(
        model=model,
        operations=operations,
        keys=keys,
        clients=clients,
        crash_rate=crash_rate,
        fail_rate=0.1,
        seed=seed,
        piece_operations=piece_operations,
    )
    table = model_table(recipe)
    assert sorted(table["index"].to_pylist()) == list(range(operations))
    for found in judged(table, model).values():
        assert (found.never_count, found.doubt) == (0, ""), found.table.to_pylist()


@pytest.mark.parametrize(("model", "lie"), LIES)
@settings(max_examples=8)
@given(seed=st.integers(0, 2**32), clients=st.integers(1, 6))
def test_a_lie_is_found_in_its_key_and_in_no_other(
    model: Model, lie: str, seed: int, clients: int
) -> None:
    recipe = ModelRecipe(
        model=model,
        operations=60,
        keys=2,
        clients=clients,
        crash_rate=0.1,
        fail_rate=0.1,
        seed=seed,
        lies=(lie,),
    )
    found = judged(model_table(recipe), model)
    assert found["k0"].never_count > 0
    assert (found["k1"].never_count, found["k1"].doubt) == (0, "")


@pytest.mark.parametrize("model", list(FS))
def test_what_follows_a_lie_is_right_again(model: Model) -> None:
    recipe = ModelRecipe(model=model, operations=80, clients=3, lies=tuple(MODEL_LIES[model]))
    table = model_table(recipe).sort_by("index")
    told = len(table) - recipe.operations
    behind = table.slice(recipe.operations // 2 + told)
    assert told > len(recipe.lies)
    assert pc.min(behind["call_ns"]).as_py() > pc.max(table["call_ns"][: len(table) - 40]).as_py()
    if model is Model.VERSIONED_REGISTER:
        seen = [version for version in behind["version"].to_pylist() if version is not None]
        assert min(seen) > 8


@settings(max_examples=2 * settings().max_examples // 5)
@given(
    model=MODELS,
    clients=st.integers(1, 9),
    keys=st.integers(1, 3),
    lies=st.integers(0, 2),
    seed=st.integers(0, 9),
)
def test_indices_follow_the_calls_and_a_process_has_one_operation_open(
    model: Model, clients: int, keys: int, lies: int, seed: int
) -> None:
    recipe = ModelRecipe(
        model=model,
        operations=50,
        keys=keys,
        clients=clients,
        crash_rate=0.1,
        seed=seed,
        lies=tuple(MODEL_LIES[model])[:lies],
        piece_operations=9,
    )
    table = model_table(recipe).sort_by("index")
    call_ns = table["call_ns"].to_numpy()
    return_ns = pc.fill_null(table["return_ns"], 1 << 62).to_numpy()
    assert np.array_equal(table["index"].to_numpy(), np.arange(len(table)))
    assert (np.diff(call_ns) >= 0).all()
    assert (return_ns >= call_ns).all()
    by_process = np.argsort(table["process"].to_numpy(), kind="stable")
    process = table["process"].to_numpy()[by_process]
    touching = call_ns[by_process][1:] >= return_ns[by_process][:-1]
    assert touching[np.diff(process) == 0].all()


def test_the_same_recipe_makes_the_same_history_and_another_seed_another() -> None:
    recipe = ModelRecipe(model=Model.REGISTER, operations=100)
    again = ModelRecipe(model=Model.REGISTER, operations=100)
    other = ModelRecipe(model=Model.REGISTER, operations=100, seed=1)
    assert model_table(recipe).equals(model_table(again))
    assert not model_table(recipe).equals(model_table(other))


@pytest.mark.parametrize("model", list(FS))
def test_there_is_of_everything(model: Model) -> None:
    """Every kind of operation and end, calls at one time, and operations that overlap."""
    table = model_table(
        ModelRecipe(model=model, operations=4000, crash_rate=0.2, fail_rate=0.2, clients=20)
    )
    outcomes = set(zip(table["f"].to_pylist(), table["outcome"].to_pylist(), strict=True))
    fs = FS[model][:2] if model is Model.REGISTER else FS[model]
    assert outcomes == {(f, outcome) for f in fs for outcome in ("ok", "fail", "info")}
    call_ns = np.sort(table["call_ns"].to_numpy())
    assert (np.diff(call_ns) == 0).mean() > 0.5
    if model is Model.VERSIONED_REGISTER:
        refused = pc.and_(
            pc.and_(pc.equal(table["f"], "cas"), pc.equal(table["outcome"], "fail")),
            pc.is_null(table["error"]),
        )
        assert 0.01 < pc.mean(refused.cast(pa.int8())).as_py() < 0.1


def test_no_piece_of_a_long_key_is_longer_than_the_recipe_says() -> None:
    recipe = ModelRecipe(
        model=Model.VERSIONED_REGISTER, operations=10_000, piece_operations=512, keys=3
    )
    sizes = [piece.num_rows for _, pieces in model_pieces(recipe) for piece in pieces]
    assert max(sizes) == 512
    assert sum(sizes) == 10_000
