"""The windows of a run, as they are opened and struck: the rows of `windows`.

A window is open from its first message until its rule is lifted. Every strike of a node meanwhile
counts, of whichever episode it is.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from fencepost.history.clock import TellsTime
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.verbs.episode import EpisodeWindow
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.registry import is_fault, verb_of
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.window_kinds import CHANGES_CONTROLLER
from fencepost.nemesis.wire.status import WireStatus


class WritesRows(Protocol):
    """A journal of rows, of which the last one of an index counts."""

    def add(self, row: Mapping[str, object]) -> None:
        """Record a row."""


class WindowBook:
    """The windows that a mix has announced, by their rules."""

    def __init__(self, journal: WritesRows, clock: TellsTime) -> None:
        self._journal = journal
        self._clock = clock
        self._announced: dict[str, EpisodeWindow] = {}
        self._open: dict[str, dict[str, Any]] = {}
        """The rows of the windows whose rules are laid, by rule."""
        self._count = 0

    def announce(self, windows: Iterable[EpisodeWindow]) -> None:
        """Take note of windows whose rules are about to be laid."""
        self._announced |= {one.rule: one for one in windows}

    def settle(self, status: Callable[[], WireStatus]) -> None:
        """Note which windows have opened since, by the wire's status."""
        unopened = {name: row for name, row in self._open.items() if "held_ns" not in row}
        rules = status().rules if unopened else {}
        for name, row in unopened.items():
            rule = rules.get(name)
            if rule is not None and rule.first_ns is not None:
                self._note(row, held_ns=rule.first_ns)

    def performed(self, step: Step, scene: Scene) -> None:
        """Note what a step that was performed did to windows; `scene`: that before it."""
        match step:
            case Lay(name=name) if name in self._announced:
                self._begin(self._announced.pop(name))
            case Lift(name=name) if name in self._open:
                self._end(name)
            case MoveLeader():
                self._strike(verb_of(step).word)
            case OnNodes() if is_fault(step):
                self._strike(_strike_of(step, scene))
            case _:
                pass  # Heals, waits and rules of the wire strike no window.

    def close(self) -> None:
        """Note the end of all windows: the rules are lifted."""
        for name in list(self._open):
            self._end(name)

    def _begin(self, window: EpisodeWindow) -> None:
        row = {
            "index": self._count,
            "window": window.name,
            "kind": window.kind,
            "form": window.form,
            "begin_ns": self._clock.now_ns(),
            "struck": [],
        }
        self._count += 1
        self._open[window.rule] = row
        self._note(row, **({} if window.key is None else {"key": window.key}))

    def _strike(self, word: str) -> None:
        now_ns = self._clock.now_ns()
        for row in self._open.values():
            if "held_ns" in row:
                first_ns = row.get("strike_ns", now_ns)
                self._note(row, struck=[*row["struck"], word], strike_ns=first_ns)

    def _end(self, name: str) -> None:
        self._note(self._open.pop(name), end_ns=self._clock.now_ns())

    def _note(self, row: dict[str, Any], **columns: object) -> None:
        row.update(columns)
        self._journal.add(row)


def _strike_of(step: OnNodes, scene: Scene) -> str:
    """Name a strike by its verb; one on the active controller by what comes of it."""
    active = scene.active_controller
    hit = isinstance(step.target, NamedNodes) and active in step.target.nodes
    return CHANGES_CONTROLLER if hit else verb_of(step).word
