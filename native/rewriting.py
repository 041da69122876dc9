"""Dataclasses, written out as the plain classes that mypyc makes native ones of.

mypyc leaves the constructors of dataclasses to the interpreter, and a class with `slots=True` is
not native at all. So a compiled build writes out what the decorator would have made: constructor,
comparison, hash, and what pickle asks for. `clusters.compiled.adopt` adds the rest as the module is
imported. It refuses options that it does not know, rather than to leave something out.

A dataclass may inherit one of the same options: its constructor takes the fields of both.

Only a copy of the sources is rewritten.
"""

import ast
import builtins
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_OPTIONS: Final = {"frozen", "slots", "kw_only", "eq"}
_OF_FIELDS: Final = {"default", "default_factory", "init", "compare"}
_HELPERS: Final = "from fencepost.clusters.compiled import adopt as _adopt, restored as _restored"


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

    def names(self) -> set[str]:
        """Return the names that its type and its value are made of."""
        trees = [ast.parse(one) for one in (self.type, self.written)]
        return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Inherited:
    fields: Sequence[_Field]
    imports: Sequence[str]
    """The lines that import the names which these fields are made of."""


def rewritten(text: str, others: Mapping[str, str]) -> str:
    """Return a module with its dataclasses written out; raise ValueError for one that cannot be.

    `others` are the texts of modules by dotted name: those that dataclasses are inherited from.
    """
    lines = text.split("\n")
    module = ast.parse(text)
    needed: list[str] = []
    for part in reversed(module.body):
        if isinstance(part, ast.ClassDef) and any(map(_is_dataclass, part.decorator_list)):
            inherited = _inherited(part, module, others)
            _rewrite(lines, part, inherited.fields)
            needed += inherited.imports
        elif isinstance(part, ast.ImportFrom) and part.module == "dataclasses":
            lines[part.lineno - 1 : part.lineno - 1] = [_HELPERS, *needed]
    return "\n".join(lines)


def _inherited(kind: ast.ClassDef, module: ast.Module, others: Mapping[str, str]) -> _Inherited:
    """Return what a dataclass takes over from the one that it inherits."""
    bases = [one for one in kind.bases if not ast.unparse(one).startswith("Generic[")]
    if not bases:
        return _Inherited(fields=(), imports=())
    name = ast.unparse(bases[0])
    where = _imported_from(name, module)
    home = module if where is None else ast.parse(others.get(where, ""))
    found = [one for one in home.body if isinstance(one, ast.ClassDef) and one.name == name]
    if len(bases) > 1 or kind.keywords or not found or not _is_alike(kind, found[0]):
        raise ValueError(f"line {kind.lineno}: dataclass {kind.name} inherits {name}")
    above = _inherited(found[0], home, others)
    own = tuple(_fields(found[0]))
    names = {one for field in own for one in field.names() if not hasattr(builtins, one)}
    imports = (f"from {where} import {', '.join(sorted(names))}",) if where and names else ()
    return _Inherited(fields=(*above.fields, *own), imports=(*above.imports, *imports))


def _is_alike(kind: ast.ClassDef, base: ast.ClassDef) -> bool:
    """Return whether one constructor can do the work of both."""
    decorators = [ast.unparse(one) for one in base.decorator_list]
    same = decorators == [ast.unparse(one) for one in kind.decorator_list]
    return same and "__post_init__" not in _methods(base)


def _methods(kind: ast.ClassDef) -> set[str]:
    return {part.name for part in kind.body if isinstance(part, ast.FunctionDef)}


def _imported_from(name: str, module: ast.Module) -> str | None:
    """Return the module that a name is imported from; None: it is not."""
    for part in module.body:
        if isinstance(part, ast.ImportFrom) and name in {one.name for one in part.names}:
            return part.module
    return None


def _is_dataclass(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Name) and called.id == "dataclass"


def _rewrite(lines: list[str], kind: ast.ClassDef, inherited: Sequence[_Field]) -> None:
    [decorator] = kind.decorator_list
    options = _options(decorator)
    declared = list(_fields(kind))
    if again := {one.name for one in inherited} & {one.name for one in declared}:
        raise ValueError(f"line {kind.lineno}: {kind.name} declares anew: {sorted(again)}")
    fields = [*inherited, *declared]
    own = _methods(kind)
    if clash := own & {"__init__", "__eq__", "__hash__", "__reduce__"}:
        raise ValueError(f"line {kind.lineno}: {kind.name} has methods of its own: {sorted(clash)}")
    added = [*_constructor(fields, options, is_followed="__post_init__" in own), *_pickled(fields)]
    if options.get("eq", True):
        added += _comparison(kind.name, fields)
        added += _hash(fields) if options.get("frozen") else ()
    end = _lines(kind).stop
    lines[end:end] = [*added, *_adoption(kind.name, fields, options)]
    for field in reversed(declared):
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
    yield f"        if not isinstance(other, {name}) or type(self) is not type(other):"
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
