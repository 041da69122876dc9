"""Histories of objects made up from a seed, of any length, linearizable or with lies planted.

Operation *s* of all is of key s mod K and client s mod C. It takes effect at one moment between its
call and its return, which reaches at most to the client's next call; some calls are at one time.
Operations that crash are open for ever, of processes of their own, and half of them took effect;
what fails with an error did not; a cas is refused now and then.

A key is made in pieces, each from a random stream of its own, so that memory holds a piece however
long the history. Between pieces there is a pause in which nothing goes on. In that in the middle
the lies are told to the first key (`synthetic_model_lies`), each by further processes.

Nothing here is used by a check. Numpy throughout.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.generators.model_lies import (
    MODEL_LIES,
    NEW_VALUE,
    STORY_LENGTH,
    VALUES_A_STORY,
    ToldOperation,
)
from fencepost.generators.objects import FS, NOTHING, OBJECTS, Answers, KeyOperations, ModelObject
from fencepost.history.model_tables import by_bucket
from fencepost.history.models import Model
from fencepost.history.operation import Outcome
from fencepost.history.schema import MODEL_OPERATIONS

_SPACING_NS: Final = 1_000
_PIECE_OPERATIONS: Final = 1 << 18
_TOUCHING: Final = 4
"""The number of neighbouring calls at one time, if there are clients enough."""
_SET_ELEMENTS: Final = 16
"""The elements that reads of a set return, for each operation."""
_READ_SHARE: Final = 0.5
_SET_READ_SHARE: Final = 0.3
_OK, _FAIL, _INFO = range(3)
_OUTCOMES: Final = tuple(str(outcome) for outcome in (Outcome.OK, Outcome.FAIL, Outcome.INFO))
_ERROR: Final = "REQUEST_TIMED_OUT"

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRecipe:
    """The properties of the history to make."""

    model: Model
    operations: int
    """The operations over all keys, without those of the lies."""
    keys: int = 1
    clients: int = 50
    crash_rate: float = 0.01
    fail_rate: float = 0.01
    swap_share: float | None = None
    """The share of swaps in the changes of a register. None: half of those of a versioned one, none
    of a plain one, which can then be judged without a search.
    """
    lies: tuple[str, ...] = ()
    """The names in `MODEL_LIES` to tell, each once."""
    seed: int = 0
    piece_operations: int = _PIECE_OPERATIONS
    """The operations of one key in a piece, at most."""

    @property
    def key_names(self) -> list[str]:
        """The name of each key, by its number."""
        return [f"k{number}" for number in range(self.keys)]


def model_pieces(recipe: ModelRecipe) -> Iterator[tuple[str, Iterator[pa.Table]]]:
    """Yield each key with its rows of MODEL_OPERATIONS, as `history.model_writer` takes them."""
    numbers = {name: number for number, name in enumerate(recipe.key_names)}
    told = len(_stories(recipe, OBJECTS[recipe.model]()))
    for name in by_bucket(numbers):
        yield name, _key(recipe, _Course.of(recipe, told=told), number=numbers[name], name=name)


def model_table(recipe: ModelRecipe) -> pa.Table:
    """Return the history as one table, words as strings."""
    tables = [
        piece.cast(MODEL_OPERATIONS) for _, pieces in model_pieces(recipe) for piece in pieces
    ]
    return pa.concat_tables([MODEL_OPERATIONS.empty_table(), *tables])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Course:
    """The times of the calls: pieces, pauses, and the lies' place among them."""

    rounds: int
    """The operations of a key in a piece."""
    piece_count: int
    pause_ns: int
    reach_ns: int
    """The longest time that an operation takes."""
    touching: int
    told: int
    """The number of operations of lies."""

    @classmethod
    def of(cls, recipe: ModelRecipe, *, told: int) -> "_Course":
        a_key = max(1, -(-recipe.operations // recipe.keys))
        rounds = min(recipe.piece_operations, max(1, -(-a_key // 2)))
        touching = max(1, min(_TOUCHING, recipe.clients // 2))
        reach_ns = (recipe.clients - touching + 1) * _SPACING_NS
        return cls(
            rounds=rounds,
            piece_count=-(-a_key // rounds),
            pause_ns=reach_ns + (STORY_LENGTH * len(recipe.lies) + 2) * _SPACING_NS,
            reach_ns=reach_ns,
            touching=touching,
            told=told,
        )

    @property
    def middle(self) -> int:
        """The piece before which the lies are told; that behind the last, if there is but one."""
        return -(-self.piece_count // 2)

    def call_ns(self, slots: Ints, piece: int) -> Ints:
        """Return the call times of these operations, which are of one piece."""
        ours: Ints = slots // self.touching * self.touching * _SPACING_NS
        return ours + piece * self.pause_ns

    def index(self, slots: Ints, piece: int) -> Ints:
        """Return the indices: dense over all keys and the lies."""
        return slots + (self.told if piece >= self.middle else 0)


def _key(recipe: ModelRecipe, course: _Course, *, number: int, name: str) -> Iterator[pa.Table]:
    made = OBJECTS[recipe.model]()
    for piece in range(course.piece_count + 1):
        first = piece * course.rounds * recipe.keys
        if number == 0 and piece == course.middle and recipe.lies:
            yield _told_table(recipe, course, _stories(recipe, made), name=name)
        last = min(first + course.rounds * recipe.keys, recipe.operations)
        slots = np.arange(first + number, last, recipe.keys)
        if len(slots):
            rng = np.random.default_rng([recipe.seed, number, piece])
            yield _piece(recipe, course, slots, piece, made=made, rng=rng, name=name)


def _piece(
    recipe: ModelRecipe,
    course: _Course,
    slots: Ints,
    piece: int,
    *,
    made: ModelObject,
    rng: np.random.Generator,
    name: str,
) -> pa.Table:
    count = len(slots)
    call_ns = course.call_ns(slots, piece)
    effect_ns = call_ns + rng.integers(0, course.reach_ns // 2 + 1, size=count)
    return_ns = effect_ns + rng.integers(0, course.reach_ns // 2 + 1, size=count)
    chance = rng.random(count)
    outcome = np.full(count, _OK)
    outcome[chance < recipe.crash_rate + recipe.fail_rate] = _FAIL
    outcome[chance < recipe.crash_rate] = _INFO
    crashed = outcome == _INFO
    order = np.argsort(effect_ns, kind="stable")
    f = _fs(recipe, rng, count, before=int(slots[0]) // recipe.keys)
    answers = made.answers(
        KeyOperations(
            f=f[order],
            value=slots[order],
            happens=((outcome == _OK) | (crashed & (rng.random(count) < 0.5)))[order],  # noqa: PLR2004
            rng=rng,
        )
    )
    back = np.empty(count, np.int64)
    back[order] = np.arange(count)
    refused = answers.refused[back] & (outcome == _OK)
    erred = outcome != _OK
    outcome[refused] = _FAIL
    return _table(
        name,
        FS[recipe.model],
        index=course.index(slots, piece),
        process=np.where(crashed, recipe.clients + slots, slots % recipe.clients),
        f=f,
        call_ns=call_ns,
        return_ns=np.where(crashed, NOTHING, return_ns),
        outcome=outcome,
        erred=erred,
        **_seen(recipe.model, f, outcome == _OK, answers, back),
    )


def _fs(recipe: ModelRecipe, rng: np.random.Generator, count: int, *, before: int) -> Ints:
    """Draw the `f` of each operation; `before`: the number of operations that the key has had."""
    chance = rng.random(count)
    if recipe.model is Model.SET:
        # Each read has all that is there: so few that an operation costs a few elements.
        share = min(_SET_READ_SHARE, _SET_ELEMENTS / (before + count))
        return np.where(chance < share, 0, 1)
    versioned = recipe.model is Model.VERSIONED_REGISTER
    swaps = (0.5 if versioned else 0.0) if recipe.swap_share is None else recipe.swap_share
    if len(FS[recipe.model]) == 2:  # noqa: PLR2004  # a read and one change
        swaps = 0.0
    f = np.where(chance < _READ_SHARE, 0, 1)
    f[chance > 1 - swaps * (1 - _READ_SHARE)] = 2
    return f


def _seen(
    model: Model, f: Ints, ok: NDArray[np.bool_], answers: Answers, back: Ints
) -> dict[str, Any]:
    """Return what the client knows: the values it asked with, and those that an answer told it."""
    reads = f == 0
    asks_offset = reads if model is Model.LOG else np.zeros(len(f), bool)
    values = None
    if answers.values is not None:
        lengths, elements = answers.values
        starts = np.cumsum(lengths) - lengths
        kept = np.where(reads & ok, lengths[back], 0)
        ends = np.cumsum(kept)
        within = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - kept, kept)
        values = (kept, elements[np.repeat(starts[back], kept) + within], ~(reads & ok))
    return {
        "expected": answers.expected[back],
        "version": np.where(ok | asks_offset, answers.version[back], NOTHING),
        "value": np.where(ok | ~reads, answers.value[back], NOTHING),
        "values": values,
    }


def _stories(recipe: ModelRecipe, made: ModelObject) -> list[ToldOperation]:
    """Return the operations of all lies, one story after the other, in the order of their calls."""
    told: list[ToldOperation] = []
    for place, name in enumerate(recipe.lies):
        story = MODEL_LIES[recipe.model][name](made, NEW_VALUE + place * VALUES_A_STORY)
        assert max(one.end for one in story) < STORY_LENGTH, name
        later = place * STORY_LENGTH
        told += [replace(one, call=one.call + later, end=one.end + later) for one in story]
    return sorted(told, key=lambda one: one.call)


def _told_table(
    recipe: ModelRecipe, course: _Course, told: list[ToldOperation], *, name: str
) -> pa.Table:
    """Return the planted anomalies, one client each, in the gap before the middle segment."""
    before = course.middle * course.rounds * recipe.keys
    last = min(before, recipe.operations)
    # The piece before has ended by then.
    begin_ns = int(course.call_ns(np.array([last - 1]), course.middle - 1)[0])
    begin_ns += course.reach_ns + _SPACING_NS
    numbers = {
        name: np.array(
            [NOTHING if (cell := getattr(one, name)) is None else cell for one in told], np.int64
        )
        for name in ("expected", "version", "value")
    }
    lengths = [len(one.values or ()) for one in told]
    elements = [element for one in told for element in one.values or ()]
    values = (
        np.array(lengths, np.int64),
        np.array(elements, np.int64),
        np.array([one.values is None for one in told]),
    )
    outcome = np.array([_OUTCOMES.index(one.outcome) for one in told])
    return _table(
        name,
        FS[recipe.model],
        index=last + np.arange(len(told)),
        process=recipe.clients + recipe.operations + np.arange(len(told)),
        f=np.array([FS[recipe.model].index(one.f) for one in told]),
        call_ns=begin_ns + np.array([one.call for one in told]) * _SPACING_NS,
        return_ns=begin_ns + np.array([one.end for one in told]) * _SPACING_NS,
        outcome=outcome,
        erred=np.zeros(len(told), bool),
        values=values if recipe.model is Model.SET else None,
        **numbers,
    )


def _table(
    key: str,
    fs: tuple[str, ...],
    *,
    index: Ints,
    process: Ints,
    f: Ints,
    call_ns: Ints,
    return_ns: Ints,
    outcome: Ints,
    erred: NDArray[np.bool_],
    expected: Ints,
    version: Ints,
    value: Ints,
    values: tuple[Ints, Ints, NDArray[np.bool_]] | None,
) -> pa.Table:
    """Return rows of MODEL_OPERATIONS, words as dictionaries."""
    count = len(index)
    none = pa.nulls(count, MODEL_OPERATIONS.field("values").type)
    arrays = [
        pa.array(index),
        pa.array(process),
        _words(np.zeros(count, np.int64), (key,)),
        _words(f, fs),
        pa.array(call_ns),
        _or_null(return_ns),
        _words(outcome, _OUTCOMES),
        _words(np.where(erred, 0, NOTHING), (_ERROR,)),
        _or_null(expected),
        _or_null(version),
        _or_null(value),
        none if values is None else _lists(*values),
    ]
    fields = [
        field.with_type(array.type) for field, array in zip(MODEL_OPERATIONS, arrays, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _words(codes: Ints, words: tuple[str, ...]) -> pa.Array:
    indices = pa.array(np.maximum(codes, 0).astype(np.int8), mask=codes == NOTHING)
    return pa.DictionaryArray.from_arrays(indices, pa.array(words, pa.string()))


def _or_null(numbers: Ints) -> pa.Array:
    return pa.array(numbers, mask=numbers == NOTHING)


def _lists(lengths: Ints, elements: Ints, absent: NDArray[np.bool_]) -> pa.Array:
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    kind = MODEL_OPERATIONS.field("values").type
    return pa.ListArray.from_arrays(offsets, pa.array(elements), type=kind, mask=pa.array(absent))
