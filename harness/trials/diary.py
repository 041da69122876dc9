"""The notes of a trial's nodes on what became true, written down."""

import json
from dataclasses import dataclass, field
from typing import Any, Final

_S: Final = 1_000_000_000


@dataclass(slots=True)
class Diary:
    """The notes of the nodes, in the order in which they came."""

    notes: list[str] = field(default_factory=list)
    """One JSON document each: the time in seconds, the node's number, the subject, its values."""

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """Write down what a node or a client says became true."""
        words = [value if isinstance(value, int | str) else repr(value) for value in note[2:]]
        self.notes.append(json.dumps([now / _S, node, note[1], *words]))
