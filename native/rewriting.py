"""Dataclasses, written out as the plain classes that mypyc makes native ones of.

mypyc leaves the constructors of dataclasses to the interpreter, and a class with `slots=True` is
not native at all. So a compiled build writes out what the decorator would have made: constructor,
comparison, hash, and what pickle asks for. `clusters.compiled.adopt` adds the rest as the module is
imported. It refuses options that it does not know, rather than to leave something out.

Only a copy of the sources is rewritten.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["rewritten"]

_OPTIONS: Final = {"frozen", "slots", "kw_only", "eq"}
_OF_FIELDS: Final = {"default", "default_factory", "init", "compare"}
_HELPERS: Final = "from clusters.compiled import adopt as _adopt, restored as _restored"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    name: str
    type: str
    written: str
    """The value that the class assigns to it; this and the next two are expressions, or empty."""
    default: str
    factory: str
    is_argument: bool
    is_compared: bool
    lines: slice


def rewritten(text: str) -> str:
    """Return a module with its dataclasses written out; raise ValueError for one that cannot be."""
    lines = text.split("\n")
    for part in reversed(ast.parse(text).body):
        if isinstance(part, ast.ClassDef) and any(map(_is_dataclass, part.decorator_list)):
            _rewrite(lines, part)
        elif isinstance(part, ast.ImportFrom) and part.module == "dataclasses":
            lines.insert(part.lineno - 1, _HELPERS)
    return "\n".join(lines)


def _is_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "dataclass"


def _rewrite(lines: list[str], kind: ast.ClassDef) -> None:
    [decorator] = kind.decorator_list
    options = _options(decorator)
    if kind.keywords or not all(ast.unparse(one).startswith("Generic[") for one in kind.bases):
        raise ValueError(f"line {kind.lineno}: dataclass {kind.name} inherits")
    fields = list(_fields(kind))
    own = {part.name for part in kind.body if isinstance(part, ast.FunctionDef)}
    if clash := own & {"__init__", "__eq__", "__hash__", "__reduce__"}:
        raise ValueError(f"line {kind.lineno}: {kind.name} has methods of its own: {sorted(clash)}")
    added = [*_constructor(fields, options, is_followed="__post_init__" in own), *_pickled(fields)]
    if options.get("eq", True):
        added += _comparison(kind.name, fields)
        added += _hash(fields) if options.get("frozen") else ()
    end = _lines(kind).stop
    lines[end:end] = [*added, *_adoption(kind.name, fields, options)]
    for field in reversed(fields):
        lines[field.lines] = [f"    {field.name}: {field.type}"]
    del lines[_lines(decorator)]


def _lines(part: ast.stmt | ast.expr) -> slice:
    assert part.end_lineno is not None
    return slice(part.lineno - 1, part.end_lineno)


def _options(decorator: ast.expr) -> Mapping[str, bool]:
    keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
    found = {one.arg or "**": ast.literal_eval(one.value) for one in keywords}
    if unknown := found.keys() - _OPTIONS:
        raise ValueError(f"line {decorator.lineno}: a dataclass with {sorted(unknown)}")
    return found


def _fields(kind: ast.ClassDef) -> Iterator[_Field]:
    for part in kind.body:
        if not isinstance(part, ast.AnnAssign):
            continue
        annotation = ast.unparse(part.annotation)
        if annotation.startswith("ClassVar"):
            continue
        said = _said_of(part.value)
        if unknown := said.keys() - _OF_FIELDS:
            raise ValueError(f"line {part.lineno}: a field with {sorted(unknown)}")
        yield _Field(
            name=ast.unparse(part.target),
            type=annotation,
            written="" if part.value is None else ast.unparse(part.value),
            default=said.get("default", ""),
            factory=said.get("default_factory", ""),
            is_argument=said.get("init", "True") == "True",
            is_compared=said.get("compare", "True") == "True",
            lines=_lines(part),
        )


def _said_of(value: ast.expr | None) -> Mapping[str, str]:
    """Return the options of a field by name, as expressions."""
    if value is None:
        return {}
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        return {one.arg or "**": ast.unparse(one.value) for one in value.keywords}
    return {"default": ast.unparse(value)}


def _constructor(
    fields: Sequence[_Field], options: Mapping[str, bool], *, is_followed: bool
) -> Iterator[str]:
    arguments = [_argument(one) for one in fields if one.is_argument]
    star = ["*"] if options.get("kw_only") and arguments else []
    yield f"    def __init__({', '.join(['self', *star, *arguments])}) -> None:"
    for one in fields:
        if one.factory:
            given = f" if {one.name} is None else {one.name}" if one.is_argument else ""
            yield f"        self.{one.name} = {one.factory}(){given}"
        elif one.is_argument:
            yield f"        self.{one.name} = {one.name}"
        elif one.default:
            yield f"        self.{one.name} = {one.default}"
    yield "        self.__post_init__()" if is_followed else "        return"


def _argument(one: _Field) -> str:
    if one.factory:
        return f"{one.name}: {one.type} | None = None"
    return f"{one.name}: {one.type}" + (f" = {one.default}" if one.default else "")


def _pickled(fields: Sequence[_Field]) -> Iterator[str]:
    """Yield the methods for pickle; without them it refuses an object with further fields."""
    if all(one.is_argument for one in fields):
        values = ", ".join(f"{one.name!r}: self.{one.name}" for one in fields)
        yield "    def __reduce__(self) -> tuple:"
        yield f"        return (_restored, (type(self), {{{values}}}))"


def _values(fields: Sequence[_Field]) -> str:
    return "".join(f"self.{one.name}, " for one in fields)


def _comparison(name: str, fields: Sequence[_Field]) -> Iterator[str]:
    equal = [f"self.{one.name} == other.{one.name}" for one in fields if one.is_compared]
    yield "    def __eq__(self, other: object) -> bool:"
    yield f"        if not isinstance(other, {name}):"
    yield "            return NotImplemented"
    yield f"        return bool({' and '.join(equal) or True})"


def _hash(fields: Sequence[_Field]) -> Iterator[str]:
    yield "    def __hash__(self) -> int:"
    yield f"        return hash(({_values([one for one in fields if one.is_compared])}))"


def _adoption(name: str, fields: Sequence[_Field], options: Mapping[str, bool]) -> Iterator[str]:
    """Tell `adopt` what the decorator would have been told, annotations as their text."""
    annotations = {one.name: one.type for one in fields}
    defaults = ", ".join(f"{one.name!r}: {one.written}" for one in fields if one.written)
    yield f"_adopt({name}, {annotations!r}, {{{defaults}}}, {dict(options)!r})"
