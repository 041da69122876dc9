"""What happens in a trial, written down: what nodes said became true, what was done to them."""

import json
from dataclasses import dataclass, field, replace
from typing import Any, Final

from clusters.simulation.world import Watcher
from nemesis.play import step_data
from nemesis.steps import Step

__all__ = ["Diary"]

_S: Final = 1_000_000_000


@dataclass(slots=True)
class Diary:
    """Notes of the nodes and steps of the schedule, in the order in which they came."""

    notes: list[str] = field(default_factory=list)
    """One JSON document each: the time in seconds, the node's number, the subject, its values."""
    steps: list[dict[str, object]] = field(default_factory=list)
    """In the words of a scenario's play, with the time of each."""

    def step(self, now: int, step: Step) -> None:
        """Something is done to the cluster."""
        self.steps.append(step_data(replace(step, at_s=round(now / _S, 6))))

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        """A node or a client says that something became true."""
        words = [value if isinstance(value, int | str) else repr(value) for value in note[2:]]
        self.notes.append(json.dumps([now / _S, node, note[1], *words]))

    def before(self, watcher: Watcher) -> Watcher:
        """A watcher that writes the notes down and passes everything on."""
        return _Writing(self, watcher)


class _Writing:
    def __init__(self, diary: Diary, watcher: Watcher) -> None:
        self._diary = diary
        self._watcher = watcher
        self.started = watcher.started
        self.sent = watcher.sent
        self.delivered = watcher.delivered

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:
        self._diary.note(now, node, note)
        self._watcher.note(now, node, note)
