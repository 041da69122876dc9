"""A schedule as data: steps in order, each an act on nodes, an await with a bound, or a wait.

A play is checked whole before anything starts: unknown words, targets that cannot exist, abilities
the cluster lacks, and steps that contradict an earlier one (wiping a node that runs) are refused
with the path to the step. A random nemesis writes the play that it performed in the same words, so
that it can be replayed.

A step is a mapping of one word and its operand, and modifiers beside it:

    - kill: leader of t-0             # an act: kill stop start pause resume wipe snapshot rollback
    - await: {isr: {t-0: [1]}}        # a condition, bounded
      within: 20s
    - wait: 2s
    - at: 12.5s                       # not before this time of the play
      start: broker-2
    - snapshot: broker-1
      as: before
    - rollback: broker-1
      to: before
    - heal: all                       # whatever this play has broken so far
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from clusters.port import NodeName
from history.failure import SpecError
from nemesis.conditions import Condition, condition_data, parse_condition
from nemesis.targets import ByRole, Choice, NamedNodes, Target, parse_target
from nemesis.words import did_you_mean, duration_s, duration_text

__all__ = [
    "Act",
    "Await",
    "Heal",
    "Play",
    "Stage",
    "Step",
    "Wait",
    "Word",
    "parse_play",
    "step_data",
]

AWAIT_BOUND_S = 30.0
"""An await without `within`: longer than a session time-out, an election and a restart together."""


class Word(StrEnum):
    """What an act does to its nodes."""

    KILL = "kill"
    STOP = "stop"
    START = "start"
    PAUSE = "pause"
    RESUME = "resume"
    WIPE = "wipe"
    SNAPSHOT = "snapshot"
    ROLLBACK = "rollback"


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Do `word` to the target."""

    word: Word
    target: Target
    label: str = "snapshot"
    """Which snapshot, for snapshot and rollback."""
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Await:
    """Go on when the condition holds; if it does not within the bound, the play ends there."""

    condition: Condition
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Let time pass."""

    for_s: float
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Heal:
    """Undo whatever is broken: resume what is paused, start what is down."""

    at_s: float | None = None


Step = Act | Await | Wait | Heal
Play = tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a play may name: the nodes and partitions that will exist."""

    nodes: tuple[NodeName, ...]
    keys: tuple[str, ...]
    broker_ids: tuple[int, ...]


def parse_play(data: object, stage: Stage) -> Play:
    """The steps of a play. SpecError with the path to the first thing that cannot be."""
    if not isinstance(data, list):
        raise SpecError((), "a play is a list of steps")
    steps = []
    for index, item in enumerate(data):
        try:
            steps.append(_parse_step(item, stage))
        except SpecError as error:
            raise error.below(index) from None
    _refuse_contradictions(steps)
    return tuple(steps)


def step_data(step: Step) -> dict[str, object]:
    """The step as a play writes it; `parse_play` reads it back."""
    at: dict[str, object] = {} if step.at_s is None else {"at": duration_text(step.at_s)}
    match step:
        case Act(word=word, target=target, label=label):
            snapshots = {Word.SNAPSHOT: {"as": label}, Word.ROLLBACK: {"to": label}}
            return at | {str(word): _target_data(target)} | snapshots.get(word, {})
        case Await(condition=condition, within_s=within_s):
            return at | {"await": condition_data(condition), "within": duration_text(within_s)}
        case Wait(for_s=for_s):
            return at | {"wait": duration_text(for_s)}
        case Heal():
            return at | {"heal": "all"}


_MODIFIERS: Mapping[str, tuple[str, ...]] = {
    "await": ("within",),
    Word.SNAPSHOT: ("as",),
    Word.ROLLBACK: ("to",),
}
_WORDS = (*Word, "await", "wait", "heal")


def _parse_step(item: object, stage: Stage) -> Step:
    if not isinstance(item, dict):
        raise SpecError((), f"a step is a word and its operand, e.g. 'kill: {stage.nodes[-1]}'")
    words = [key for key in item if key in _WORDS]
    if len(words) != 1:
        unknown = [str(key) for key in item if key not in {*_WORDS, "at", "within", "as", "to"}]
        if unknown:
            raise SpecError(
                (unknown[0],), f"unknown word {unknown[0]!r}; {did_you_mean(unknown[0], _WORDS)}"
            )
        raise SpecError((), f"a step has exactly one word; allowed: {', '.join(_WORDS)}")
    word = str(words[0])
    _refuse_modifiers(item, word)
    try:
        return _build(word, item, stage)
    except SpecError as error:
        raise error.below(word) if not error.path or error.path[0] not in item else error from None


def _refuse_modifiers(item: Mapping[str, object], word: str) -> None:
    allowed = ("at", *_MODIFIERS.get(word, ()))
    for key in item:
        if key != word and key not in allowed:
            raise SpecError(
                (str(key),), f"{key!r} does not go with {word!r}; {did_you_mean(str(key), allowed)}"
            )


def _build(word: str, item: Mapping[str, object], stage: Stage) -> Step:
    at_s = _duration(item, "at") if "at" in item else None
    match word:
        case "await":
            condition = parse_condition(
                item["await"], nodes=stage.nodes, keys=stage.keys, broker_ids=stage.broker_ids
            )
            within_s = _duration(item, "within") if "within" in item else AWAIT_BOUND_S
            return Await(condition=condition, within_s=within_s, at_s=at_s)
        case "wait":
            return Wait(for_s=_duration(item, "wait"), at_s=at_s)
        case "heal":
            if item["heal"] != "all":
                raise SpecError((), f"heal takes 'all', not {item['heal']!r}")
            return Heal(at_s=at_s)
        case _:
            target = parse_target(item[word], nodes=stage.nodes, keys=stage.keys)
            label = str(item.get("as", item.get("to", "snapshot")))
            return Act(word=Word(word), target=target, label=label, at_s=at_s)


def _duration(item: Mapping[str, object], key: str) -> float:
    try:
        return duration_s(item[key])
    except SpecError as error:
        raise error.below(key) from None


def _target_data(target: Target) -> object:
    match target:
        case NamedNodes(nodes=nodes):
            return str(nodes[0]) if len(nodes) == 1 else [str(node) for node in nodes]
        case Choice(share=share, role=role):
            return f"{share} {role}" if share == "one" else f"{share} {role}s"
        case ByRole(role=role, key=key):
            return f"{role} {key}" if key else str(role)


_NEEDS_DOWN = {Word.START, Word.WIPE, Word.ROLLBACK}
_NEEDS_UP = {Word.KILL, Word.STOP, Word.PAUSE}


def _refuse_contradictions(steps: Sequence[Step]) -> None:
    """Follow the nodes that are named: a node must be down to be wiped, up to be killed.

    Targets known only while the play runs (`leader of t-0`) make every node's state uncertain.
    """
    state: dict[NodeName, str] = {}
    labels: set[str] = set()
    certain = True
    for index, step in enumerate(steps):
        if isinstance(step, Heal):
            state, certain = {}, True
        if not isinstance(step, Act):
            continue
        if step.word is Word.SNAPSHOT:
            labels.add(step.label)
        if step.word is Word.ROLLBACK and step.label not in labels:
            raise SpecError((index, "rollback"), f"no earlier step takes a snapshot {step.label!r}")
        if not isinstance(step.target, NamedNodes):
            certain = False
        elif certain:
            for node in step.target.nodes:
                _follow(step.word, node, state, index)


def _follow(word: Word, node: NodeName, state: dict[NodeName, str], index: int) -> None:
    now = state.get(node, "up")
    if word in _NEEDS_DOWN and now != "down":
        raise SpecError((index, str(word)), f"{node} is {now} at this step; kill or stop it first")
    if word in _NEEDS_UP and now == "down":
        raise SpecError((index, str(word)), f"{node} is down already at this step")
    if word is Word.PAUSE and now == "paused":
        raise SpecError((index, str(word)), f"{node} is paused already at this step")
    if word is Word.RESUME and now != "paused":
        raise SpecError((index, str(word)), f"{node} is {now} at this step; pause it first")
    after = {
        Word.KILL: "down",
        Word.STOP: "down",
        Word.START: "up",
        Word.RESUME: "up",
        Word.PAUSE: "paused",
    }
    state[node] = after.get(word, now)
