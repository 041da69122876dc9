"""The shape of an operation's value in a file, model by model, for reading and writing.

A *layout* says where the columns of the table stand in the value: `value` alone, or a vector of
columns. The same layouts serve EDN and JSON, where a vector is an array:

| model | f | value |
|---|---|---|
| versioned-register | read, write | [version value] |
| | cas | [version [expected value]] |
| register | read, write | value |
| | cas | [expected value] |
| log | append, read | [offset value] |
| set | add | value |
| | read | #{value …} (or a vector) |
| counter | add, read | value |
| list-append | txn | [[:append key value] [:r key [value …]] …] |

The parts that only the answer tells (the value read, the version made, the offset of an append) are
nil in an invocation and in an end that is not ok. The parts that the client stated stand in both.

Sources: jepsen.independent, jepsen.tests.cycle.append, Elle's list-append; jepsen.etcd's registers
for values with their versions.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.history.models import Model
from fencepost.history.open.edn import EdnSet, Keyword, edn_text
from fencepost.history.open.operation import Cells
from fencepost.history.open.refusal import BadLineError, shown
from fencepost.history.open.scalars import key_text

Layout = Any
"""A name of a column, or a tuple of layouts."""

_INT64_MAX: Final = (1 << 63) - 1
_NUMBERS: Final = ("version",)
_STEPS: Final = {"append": "append", "r": "read"}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationShape:
    """The operations of one `f` of a model."""

    layout: Layout
    asked: tuple[str, ...] = ()
    """The columns that the client states."""
    answered: tuple[str, ...] = ()
    """The columns that an ok answer tells."""
    optional: frozenset[str] = frozenset()
    """The columns among these that may be null all the same: there was no value."""
    numeric: bool = False
    """True if `expected` is a version, or `value` a number to reckon with, and no mere name."""


_ANY: Final = frozenset(("value",))

SHAPES: Final[Mapping[Model, Mapping[str, OperationShape]]] = {
    Model.VERSIONED_REGISTER: {
        "read": OperationShape(
            layout=("version", "value"), answered=("version", "value"), optional=_ANY
        ),
        "write": OperationShape(
            layout=("version", "value"), asked=("value",), answered=("version",)
        ),
        "cas": OperationShape(
            layout=("version", ("expected", "value")),
            asked=("expected", "value"),
            answered=("version",),
        ),
    },
    Model.REGISTER: {
        "read": OperationShape(layout="value", answered=("value",), optional=_ANY),
        "write": OperationShape(layout="value", asked=("value",)),
        "cas": OperationShape(
            layout=("expected", "value"),
            asked=("expected", "value"),
            optional=frozenset(("expected",)),
        ),
    },
    Model.LOG: {
        "append": OperationShape(
            layout=("version", "value"), asked=("value",), answered=("version",)
        ),
        "read": OperationShape(
            layout=("version", "value"), asked=("version",), answered=("value",), optional=_ANY
        ),
    },
    Model.SET: {
        "add": OperationShape(layout="value", asked=("value",)),
        "read": OperationShape(layout="values", answered=("values",)),
    },
    Model.COUNTER: {
        "add": OperationShape(layout="value", asked=("value",), numeric=True),
        "read": OperationShape(layout="value", answered=("value",), numeric=True),
    },
}
"""The shapes by model and `f`; transactions of list-append have steps instead."""


def shape_of(model: Model, f: str) -> OperationShape:
    """Return the shape of `f`; raise RefusedError for one that the model does not have."""
    shape = SHAPES[model].get(f)
    if shape is None:
        raise BadLineError(f"expected f of a {model}: {', '.join(SHAPES[model])}; found {shown(f)}")
    return shape


def asked_cells(model: Model, f: str, key: str, value: Any) -> Cells:
    """Return what an invocation says."""
    shape = shape_of(model, f)
    found = {} if value is None and not shape.asked else _leaves(shape.layout, value)
    cells = _cells(key, f, found, keep=shape.asked)
    return check_cells(model, cells, ok=False)


def answered_cells(model: Model, asked: Cells, value: Any) -> Cells:
    """Return what an ok answer to it says; raise RefusedError if it answers something else."""
    shape = shape_of(model, asked.f)
    cells = _cells(
        asked.key, asked.f, _leaves(shape.layout, value), keep=(*shape.asked, *shape.answered)
    )
    for name in shape.asked:
        if getattr(cells, name) != getattr(asked, name):
            raise BadLineError(
                f"expected an answer with the {name} of its invocation, "
                f"{shown(getattr(asked, name))}; found {shown(getattr(cells, name))}"
            )
    return check_cells(model, cells, ok=True)


def check_cells(model: Model, cells: Cells, *, ok: bool) -> Cells:
    """Return the cells if each column is as the model has it; raise RefusedError if not."""
    shape = shape_of(model, cells.f)
    for name in ("expected", "version", "value", "values"):
        found = getattr(cells, name)
        told = name in shape.asked or (ok and name in shape.answered)
        if found is None:
            if told and name not in shape.optional:
                raise BadLineError(f"expected {_named(model, name)} of this {cells.f}; found none")
        elif not told:
            raise BadLineError(
                f"expected no {_named(model, name)} of this {cells.f}; found {shown(found)}"
            )
        elif _is_number(model, shape, name):
            _refuse_no_number(model, name, found, least=-_INT64_MAX if shape.numeric else 0)
    return cells


def asked_value(model: Model, cells: Cells) -> Any:
    """Return the value of the invocation."""
    shape = SHAPES[model][cells.f]
    return _filled(shape.layout, cells, keep=shape.asked, as_set=False)


def answer_value(model: Model, cells: Cells) -> Any:
    """Return the value of the ok answer."""
    shape = SHAPES[model][cells.f]
    keep = (*shape.asked, *shape.answered)
    return _filled(shape.layout, cells, keep=keep, as_set=model is Model.SET)


def steps_of(value: Any, *, ok: bool) -> tuple[Cells, ...]:
    """Return the steps of a transaction over lists."""
    if not isinstance(value, tuple):
        raise BadLineError(f"expected the steps of a transaction; found {shown(value)}")
    return tuple(_step(step, ok=ok) for step in value)


def steps_value(steps: tuple[Cells, ...], *, ok: bool) -> tuple[Any, ...]:
    """Return the value of an invocation, or of an ok answer. An empty list is nil, as in Elle."""
    return tuple(
        (Keyword("append"), step.key, step.value)
        if step.f == "append"
        else (Keyword("r"), step.key, (step.values or None) if ok else None)
        for step in steps
    )


def _step(step: Any, *, ok: bool) -> Cells:
    if not isinstance(step, tuple) or len(step) != 3:  # noqa: PLR2004  # f, key, value
        raise BadLineError(
            f"expected a step [:append key value] or [:r key values]; found {shown(step)}"
        )
    f = step[0].name if isinstance(step[0], Keyword) else step[0]
    if f not in _STEPS:
        raise BadLineError(f"expected a step {' or '.join(_STEPS)}; found {shown(step[0])}")
    key = key_text(step[1])
    if f == "append":
        if step[2] is None:
            raise BadLineError(f"expected the value that is appended; found {shown(step)}")
        return Cells(key=key, f="append", value=step[2])
    if not ok:
        return Cells(key=key, f="read")
    return Cells(key=key, f="read", values=() if step[2] is None else _elements(step[2]))


def _leaves(layout: Layout, value: Any) -> dict[str, Any]:
    """Return the part of the value at each column of the layout."""
    if layout == "values":
        return {layout: None if value is None else _elements(value)}
    if isinstance(layout, str):
        return {layout: value}
    if not isinstance(value, tuple) or len(value) != len(layout):
        raise BadLineError(f"expected a value {_drawn(layout)}; found {shown(value)}")
    found: dict[str, Any] = {}
    for part, item in zip(layout, value, strict=True):
        found |= _leaves(part, item)
    return found


def _elements(value: Any) -> tuple[Any, ...]:
    items = value.items if isinstance(value, EdnSet) else value
    if not isinstance(items, tuple):
        raise BadLineError(f"expected elements; found {shown(value)}")
    return items


def _filled(layout: Layout, cells: Cells, *, keep: tuple[str, ...], as_set: bool) -> Any:
    if not isinstance(layout, str):
        return tuple(_filled(part, cells, keep=keep, as_set=as_set) for part in layout)
    found = getattr(cells, layout) if layout in keep else None
    return _set_or_vector(found) if as_set and layout == "values" and found is not None else found


def _set_or_vector(elements: tuple[Any, ...]) -> EdnSet | tuple[Any, ...]:
    """Return the elements as a set, or as they are if one occurs twice, which no set shows."""
    different = set(map(edn_text, elements))
    return EdnSet(elements) if len(different) == len(elements) else elements


def _cells(key: str, f: str, found: Mapping[str, Any], *, keep: tuple[str, ...]) -> Cells:
    extra = {name: item for name, item in found.items() if name not in keep and item is not None}
    return Cells(key=key, f=f, **({name: found.get(name) for name in keep} | extra))


def _is_number(model: Model, shape: OperationShape, name: str) -> bool:
    versioned = name == "expected" and model is Model.VERSIONED_REGISTER
    return name in _NUMBERS or versioned or (shape.numeric and name == "value")


def _refuse_no_number(model: Model, name: str, found: Any, *, least: int) -> None:
    if type(found) is not int or not least <= found <= _INT64_MAX:
        raise BadLineError(f"expected {_named(model, name)}: an integer; found {shown(found)}")


def _named(model: Model, name: str) -> str:
    return "offset" if model is Model.LOG and name == "version" else name


def _drawn(layout: Layout) -> str:
    return layout if isinstance(layout, str) else f"[{' '.join(map(_drawn, layout))}]"
