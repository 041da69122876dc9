"""YAML with places: every value knows its line, so that an error can name file and line.

A flag of the command line may replace a value; an error in it then names the flag.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from history.failure import SpecError, UsageError

__all__ = ["Document", "load_document"]

Path_ = tuple[str | int, ...]

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

    def place(self, path: Path_) -> str:
        """Return `file:line` of the value at `path`, or of its nearest ancestor in the file.

        Where a flag set the value, it is the flag.
        """
        heads = [path[:length] for length in range(len(path), -1, -1)]
        for head in heads:
            if head in self.flags:
                return self.flags[head]
        return next((f"{self.name}:{self.lines[h]}" for h in heads if h in self.lines), self.name)

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
        return f"{self.place(found.path)}: {where}{found.message}"

    def _line(self, path: Path_) -> int:
        place, _, line = self.place(path).rpartition(":")
        return int(line) if place == self.name else 0

    def stated(self, key: str) -> Any:
        """Return the file's own value under this key of its top, without any flag; else None."""
        data = yaml.safe_load(self.text) if self.flags else self.data
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

    def without(self, *keys: str) -> "Document":
        """Return this document without these keys of its top."""
        kept = {key: value for key, value in self.data.items() if key not in keys}
        flags = dict(self.flags)
        for key in keys:
            flags[(key,)] = "command line"
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
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot read it: {error}") from None
    try:
        loader = yaml.SafeLoader(text)
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            raise UsageError(f"{path}:1: {expected}")
        lines: dict[Path_, int] = {(): root.start_mark.line + 1}
        # Before values are made of the nodes: that lays what is merged into them.
        _collect(root, (), lines, str(path))
        data = loader.construct_document(root)
    except yaml.YAMLError as error:
        raise UsageError(f"{_yaml_place(path, error)}: {_yaml_problem(error)}") from None
    return Document(name=str(path), text=text, data=data, lines=lines, flags={})


def _collect(node: yaml.Node, path: Path_, lines: dict[Path_, int], name: str) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            below = (*path, str(key.value))
            if below in lines:
                raise UsageError(
                    f"{name}:{key.start_mark.line + 1}: {key.value!r} stands here a second time "
                    f"(first on line {lines[below]})"
                )
            lines[below] = key.start_mark.line + 1
            _collect(value, below, lines, name)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[(*path, index)] = value.start_mark.line + 1
            _collect(value, (*path, index), lines, name)


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
