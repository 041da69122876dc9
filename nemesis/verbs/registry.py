"""Every verb, found in the files of this folder: a new file with VERBS is a new word of plays.

A file with EPISODES has kinds of fault of a mix that are made of several verbs.

Mixes and pages ask here, too, for the faults to draw and the colours, so that no fault has a second
name.
"""

import pkgutil
from collections.abc import Iterator, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, Final

from fencepost.nemesis import verbs
from fencepost.nemesis.verbs.episode import Episode
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import Breaking, Step
from fencepost.nemesis.verbs.verb import NodeAction, Verb

_MACHINERY: Final = frozenset({"page", "registry"})
"""Files that import this one."""


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.iter_modules(verbs.__path__):
        if found.name not in _MACHINERY:
            yield import_module(f"{verbs.__name__}.{found.name}")


def _found() -> Iterator[tuple[Verb[Any], ModuleType]]:
    for module in _modules():
        yield from ((verb, module) for verb in getattr(module, "VERBS", ()))


def _found_episodes() -> Iterator[Episode]:
    for module in _modules():
        yield from getattr(module, "EPISODES", ())


_FOUND: Final = tuple(_found())
_ALL: Final = tuple(verb for verb, _ in _FOUND)
VERBS: Final[Mapping[str, Verb[Any]]] = {verb.word: verb for verb in _ALL}
"""The verbs by word. Of a word with two classes of steps, one of its verbs: they parse alike."""

_OF_STEP: Final[Mapping[type, tuple[Verb[Any], ...]]] = {
    kind: tuple(verb for verb in _ALL if verb.step is kind) for kind in {v.step for v in _ALL}
}

FAULTS: Final = tuple(verb.word for verb in _ALL if verb.action is not None and verb.fault)
"""The words of those that break nodes."""

EPISODES: Final[Mapping[str, Episode]] = {
    episode.kind: episode
    for episode in (*(one for verb in _ALL for one in verb.episodes), *_found_episodes())
}
"""The kinds of fault that a mix draws from: those of verbs, and those of several verbs."""

STRIKES: Final = tuple(kind for kind, episode in EPISODES.items() if episode.strikes)
"""The kinds that concern single messages of the protocol."""


def module_of(verb: Verb[Any]) -> ModuleType:
    """Return the file of a verb."""
    return next(module for one, module in _FOUND if one is verb)


def verb_of(step: Step) -> Verb[Any]:
    """Find the verb of a step; raise KeyError for a block of a play, which has none."""
    verbs = _OF_STEP[type(step)]
    return verbs[0] if len(verbs) == 1 else next(verb for verb in verbs if verb.fits(step))


def is_fault(step: Step) -> bool:
    """Return whether the step breaks something, and does not only mend, copy or watch."""
    return isinstance(step, Breaking) and verb_of(step).fault


def kind_of(step: Breaking) -> str:
    """Name the kind of fault that this step is of: its mix's, else its verb's."""
    if step.kind:
        return step.kind
    verb = verb_of(step)
    return verb.word if verb.kind is None else verb.kind(step)


KINDS: Final = tuple(dict.fromkeys((*(verb.word for verb in _ALL if verb.fault), *EPISODES)))
"""The kinds of fault by the one name that each has: in mixes, plays, journals, checks and pages."""


def kinds_with_prerequisite(prerequisite: Prerequisite) -> frozenset[str]:
    """Name the kinds of fault that a mix draws and that take this."""
    return frozenset(
        kind
        for kind, episode in EPISODES.items()
        if episode.prerequisite is prerequisite
        or prerequisite
        in {
            action.prerequisite
            for action in map(_action_of, episode.example())
            if action is not None
        }
    )


def _action_of(step: Step) -> "NodeAction[Any] | None":
    return verb_of(step).action
