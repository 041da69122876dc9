"""YAML with places: every value knows its line, so that an error can name file and line.

A flag of the command line may replace a value; an error in it then names the flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import yaml

from fencepost.history.failure import SpecError, UsageError

Path_ = tuple[str | int, ...]

_BaseLoader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it: it takes a tenth of the time."""
_BYTES_MAX: Final = 4 << 20
_DEPTH_MAX: Final = 40
"""A play within a play within a play is 20 deep."""
_VALUES_MAX: Final = 100_000
"""A second of work."""
_MESSAGE_MAX: Final = 2400
"""A longer message quotes what was found, and is cut."""
_SCENARIO = "a scenario is a mapping of keys to values, e.g. 'name: smoke'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A parsed file and where each of its values stands."""

    name: str
    """The file, as the user named it."""
    text: str
    data: dict[str, Any]
    lines: Mapping[Path_, int]
    """The 1-based line of each value (of a mapping's value: the line of its key), by path."""
    flags: Mapping[Path_, str]
    """The flags that replaced values, by the path of the value."""
    elsewhere: Mapping[Path_, str] = field(default_factory=dict)
    """The `file:line` of values that come from another file (`composed`), by path."""

    def place(self, path: Path_) -> str:
        """Return `file:line` of the value at `path`, or of its nearest ancestor in the file.

        Where a flag set the value, it is the flag.
        """
        heads = [path[:length] for length in range(len(path), -1, -1)]
        for head in heads:
            if head in self.flags:
                return self.flags[head]
        for head in heads:
            if head in self.lines:
                return f"{self.name}:{self.lines[head]}"
            if head in self.elsewhere:
                return self.elsewhere[head]
        return self.name

    def error(self, found: SpecError) -> UsageError:
        """Return an error with a line for each mistake.

        Flags come first, then the rest as they stand in the file.

        It says the place, the path, what is wrong, and what is allowed.
        """
        in_order = sorted(found.all, key=lambda one: self._line(one.path))
        return UsageError(*dict.fromkeys(map(self._sentence, in_order)))

    def _sentence(self, found: SpecError) -> str:
        dotted = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in found.path)
        where = f"{dotted.removeprefix('.')}: " if dotted else ""
        message = found.message
        if len(message) > _MESSAGE_MAX:
            message = f"{message[: _MESSAGE_MAX // 2]} … {message[-_MESSAGE_MAX // 2 :]}"
        return f"{self.place(found.path)}: {where:.200}{message}"

    def _line(self, path: Path_) -> int:
        place, _, line = self.place(path).rpartition(":")
        return int(line) if place == self.name else 0

    def stated(self, key: str) -> Any:
        """Return the file's own value under this key of its top, without any flag; else None."""
        data = _Loader(self.text).get_single_data() if self.flags else self.data
        return data.get(key)

    def resolved(self) -> str:
        """Return the text of what is really run.

        It is the file itself, or its data where flags changed it.
        """
        if not self.flags:
            return self.text
        flags = ", ".join(sorted(set(self.flags.values())))
        dumped = yaml.safe_dump(self.data, sort_keys=False, allow_unicode=True)
        return f"# {self.name} with {flags}\n{dumped}"

    def without(self, *keys: str, flag: str = "command line") -> "Document":
        """Return this document without these keys of its top, as a flag asks."""
        kept = {key: value for key, value in self.data.items() if key not in keys}
        flags = dict(self.flags)
        for key in keys:
            flags[(key,)] = flag
        return replace(self, data=kept, flags=flags)

    def with_flag(self, path: Path_, value: object, flag: str) -> "Document":
        """Return this document with the value at `path` replaced by a flag's."""
        return replace(
            self,
            data=_with(self.data, path, value),
            flags={**self.flags, path: flag},
        )


def load_document(path: Path, *, expected: str = _SCENARIO) -> Document:
    """Parse a YAML file whose top is a mapping; raise UsageError with file and line if it is not.

    `expected`: the top of such a file, in words.
    """
    text = _text_of(path)
    try:
        _refuse_unbounded(path, text)
        loader = _Loader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise UsageError(f"{path}:1: {expected}")
        lines: dict[Path_, int] = {(): root.start_mark.line + 1}
        # Before values are made of the nodes: that lays what is merged into them.
        _Collecting(name=str(path), lines=lines).collect(root, ())
        data = loader.construct_document(root)
    except yaml.YAMLError as error:
        raise UsageError(f"{_yaml_place(path, error)}: {_yaml_problem(error)}") from None
    return Document(name=str(path), text=text, data=data, lines=lines, flags={})


def value_of(text: str) -> Any:
    """Return a value of a flag, as a file would have it. Raises yaml.YAMLError or ValueError."""
    return _Loader(text).get_single_data()


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
        if len(content) > _BYTES_MAX:
            raise UsageError(f"{path}: larger than {_BYTES_MAX >> 20} MiB; write less")
        return content.decode("utf-8").replace("\r\n", "\n")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot read it: {error}") from None


def _refuse_unbounded(path: Path, text: str) -> None:
    """Raise UsageError for a file whose values would take minutes, or the stack, to make.

    It is read as events first, which takes neither.
    """
    depth = value_count = 0
    for event in yaml.parse(text, Loader=_BaseLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        value_count += isinstance(event, yaml.NodeEvent)
        if depth > _DEPTH_MAX or value_count > _VALUES_MAX:
            of = f"{_DEPTH_MAX} deep" if depth > _DEPTH_MAX else f"{_VALUES_MAX:,} values"
            raise UsageError(f"{path}:{_line_of(event)}: more than {of}; write less")


def _line_of(event: yaml.Event) -> int:
    return 1 if event.start_mark is None else event.start_mark.line + 1


class _Loader(_BaseLoader):  # type: ignore[misc]  # one of two
    """A loader of plain values: dates are texts, and a number that cannot be is a mistake."""


def _number(loader: Any, node: yaml.ScalarNode) -> object:
    make = {"int": loader.construct_yaml_int, "float": loader.construct_yaml_float}
    try:
        return make[node.tag.rpartition(":")[2]](node)
    except (ValueError, OverflowError):
        raise yaml.constructor.ConstructorError(
            None, None, f"not a number: {node.value!r:.40}", node.start_mark
        ) from None


for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)
_Loader.add_constructor(
    "tag:yaml.org,2002:timestamp", lambda _, node: str(node.value)
)  # "2001-99-99" is a name, and no day


@dataclass(slots=True, kw_only=True)
class _Collecting:
    """The lines of all values, those of aliases once more at each place where they stand."""

    name: str
    lines: dict[Path_, int]
    _within: list[int] = field(default_factory=list)
    """The nodes, by identity, whose values are being collected."""

    def collect(self, node: yaml.Node, path: Path_) -> None:
        if id(node) in self._within:
            line = node.start_mark.line + 1
            raise UsageError(f"{self.name}:{line}: a value that contains itself, by an alias")
        if len(self.lines) > _VALUES_MAX:
            found = f"its aliases stand for more than {_VALUES_MAX:,} values; write less"
            raise UsageError(f"{self.name}:{node.start_mark.line + 1}: {found}")
        self._within.append(id(node))
        if isinstance(node, yaml.MappingNode):
            self._mapping(node, path)
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                self.lines[(*path, index)] = value.start_mark.line + 1
                self.collect(value, (*path, index))
        self._within.pop()

    def _mapping(self, node: yaml.MappingNode, path: Path_) -> None:
        for key, value in node.value:
            below = (*path, str(key.value))
            if below in self.lines:
                found = f"is given twice (first on line {self.lines[below]})"
                line = key.start_mark.line + 1
                raise UsageError(f"{self.name}:{line}: {key.value!r:.80} {found}")
            self.lines[below] = key.start_mark.line + 1
            self.collect(value, below)


def _yaml_place(path: Path, error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f"{path}:{mark.line + 1}" if mark is not None else str(path)


def _yaml_problem(error: yaml.YAMLError) -> str:
    return f"not YAML: {getattr(error, 'problem', None) or error}"


def _with(data: Mapping[str, Any], path: Path_, value: object) -> dict[str, Any]:
    head, *rest = path
    return {**data, str(head): _replaced(data.get(str(head)), tuple(rest), value)}


def _replaced(old: Any, path: Path_, value: object) -> Any:
    if not path:
        return value
    if isinstance(old, list) and isinstance(path[0], int):
        return [
            _replaced(item, path[1:], value) if index == path[0] else item
            for index, item in enumerate(old)
        ]
    return _with(old if isinstance(old, dict) else {}, path, value)
