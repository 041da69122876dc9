"""A schedule as data: steps in order, each an act, an await with a bound, or a wait.

A play is checked whole before anything starts: unknown words, targets that cannot exist, abilities
the cluster lacks, and steps that contradict an earlier one (wiping a node that runs, releasing what
nobody holds) are refused with the path to the step. A random nemesis writes the play that it
performed in the same words, so that it can be replayed.

A step is a mapping of one word and its operand, and modifiers beside it:

    - kill: leader of t-0             # an act: kill stop start pause resume wipe cut_power …
    - await: {isr: {t-0: [1]}}        # a condition, bounded
      within: 20s
    - wait: 2s
    - at: 12.5s                       # not before this time of the play
      start: broker-2
    - {snapshot: broker-1, as: before}
    - {rollback: broker-1, to: before}
    - {skew: broker-1, jump: -60s}    # its wall clock; `unskew` puts it right
    - hold: {as: join, api: AlterPartition, from: broker-1, where: {isr includes: 2}}
    - release: join                   # any rule of the wire ends so; `discard` drops what it held
    - partition: {isolate: broker-3, as: alone}
    - heal: alone                     # or all: whatever this play has broken so far
    - create_topic: {name: u}
    - move_leader: {t-0: 2}
    - restart: all brokers            # one after the other
      to: 4.3.1                       # of that release from then on, as `start` can, too
    - finalise: '4.3'                 # the metadata.version
    - add: broker-4                   # a spare one
    - remove: broker-1
    - repeat: 3
      steps: [{kill: one broker}, {heal: all}]
    - choose: [[{kill: broker-1}], [{pause: broker-1}]]
"""

from collections.abc import Mapping
from dataclasses import replace

from clusters.port import FlippedPart
from history.failure import SpecError
from nemesis.admin_words import ADMIN_WORDS, admin_data, parse_admin
from nemesis.condition_words import condition_data, parse_condition
from nemesis.continuity import refuse_contradictions
from nemesis.host_words import HARDSHIP_MODIFIERS, hardship_data, parse_hardship
from nemesis.partition_words import (
    bandwidth_data,
    parse_bandwidth,
    parse_partition,
    partition_data,
)
from nemesis.release_words import parse_release
from nemesis.stage import Stage
from nemesis.steps import (
    AWAIT_BOUND_S,
    Act,
    AddNodes,
    Await,
    Bandwidth,
    Choose,
    CreateTopic,
    Finalise,
    Heal,
    HealPartition,
    Lay,
    Lift,
    MoveLeader,
    Partition,
    Play,
    Reassign,
    RemoveNodes,
    Repeat,
    Step,
    Wait,
    Word,
)
from nemesis.targets import parse_target, target_data
from nemesis.wire_words import RULE_WORDS, lay_data, parse_lay
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
    "step_word",
]

_MODIFIERS: Mapping[str, tuple[str, ...]] = {
    "await": ("within",),
    "repeat": ("steps",),
    Word.SNAPSHOT: ("as",),
    Word.ROLLBACK: ("to",),
    Word.START: ("to",),
    Word.RESTART: ("to",),
    Word.WIPE: ("keep_directory_id", "by_tool"),
    Word.CUT_POWER: ("torn", "seed"),
    Word.SLOW_DISK: ("by",),
    Word.FLIP_BIT: ("in", "seed"),
    **HARDSHIP_MODIFIERS,
    **dict.fromkeys(ADMIN_WORDS, ("within",)),
}
_WORDS = (
    *Word,
    *RULE_WORDS,
    *ADMIN_WORDS,
    "release",
    "discard",
    "partition",
    "bandwidth",
    "await",
    "wait",
    "heal",
    "repeat",
    "choose",
)
_LABELLED = (Word.SNAPSHOT, Word.ROLLBACK)
_STARTS = (Word.START, Word.RESTART)
_ALL_MODIFIERS = {"at", *(word for words in _MODIFIERS.values() for word in words)}


def parse_play(data: object, stage: Stage) -> Play:
    """The steps of a play. SpecError with the path to the first thing that cannot be."""
    play = _parse_steps(data, stage)
    refuse_contradictions(play, stage)
    return play


def step_word(step: Step) -> str:
    """The word of a play for this step."""
    return next(key for key in _step_data(step) if key in _WORDS)


def step_data(step: Step) -> dict[str, object]:
    """The step as a play writes it; `parse_play` reads it back."""
    at: dict[str, object] = {} if step.at_s is None else {"at": duration_text(step.at_s)}
    return at | _step_data(step)


def _step_data(step: Step) -> dict[str, object]:
    match step:
        case Act():
            return _act_data(step)
        case Await(condition=condition, within_s=within_s):
            return {"await": condition_data(condition), "within": duration_text(within_s)}
        case Wait(for_s=for_s):
            return {"wait": duration_text(for_s)}
        case Heal():
            return {"heal": "all"}
        case HealPartition(name=name):
            return {"heal": name}
        case Lay():
            return lay_data(step)
        case Lift(name=name, discard=discard):
            return {"discard" if discard else "release": name}
        case Partition():
            return partition_data(step)
        case Bandwidth():
            return bandwidth_data(step)
        case CreateTopic() | MoveLeader() | Reassign() | Finalise() | AddNodes() | RemoveNodes():
            return admin_data(step)
        case Repeat(times=times, steps=steps):
            return {"repeat": times, "steps": [step_data(one) for one in steps]}
        case Choose(options=options):
            return {"choose": [[step_data(one) for one in option] for option in options]}


def _act_data(act: Act) -> dict[str, object]:
    modifiers: dict[str, object] = {}
    match act.word:
        case Word.SNAPSHOT:
            modifiers = {"as": act.label}
        case Word.ROLLBACK:
            modifiers = {"to": act.label}
        case Word.WIPE:
            flags = {"keep_directory_id": act.keep_directory_id, "by_tool": act.by_tool}
            modifiers = {name: True for name, is_set in flags.items() if is_set}
        case Word.CUT_POWER if act.torn:
            modifiers = {"torn": True}
        case Word.SLOW_DISK:
            modifiers = {"by": duration_text(act.stall_s)}
        case Word.FLIP_BIT:
            modifiers = {"in": str(act.part)}
        case _ if act.release is not None:
            modifiers = {"to": act.release}
        case _:
            pass
    if act.seed is not None:
        modifiers["seed"] = act.seed
    return {str(act.word): target_data(act.target)} | modifiers | hardship_data(act.hardship)


def _parse_steps(data: object, stage: Stage) -> Play:
    if not isinstance(data, list):
        raise SpecError((), "a play is a list of steps")
    steps = []
    for index, item in enumerate(data):
        try:
            steps.append(_parse_step(item, stage))
        except SpecError as error:
            raise error.below(index) from None
    return tuple(steps)


def _parse_step(item: object, stage: Stage) -> Step:
    if not isinstance(item, dict):
        raise SpecError((), f"a step is a word and its operand, e.g. 'kill: {stage.nodes[-1]}'")
    words = [key for key in item if key in _WORDS]
    if len(words) != 1:
        unknown = [str(key) for key in item if key not in {*_WORDS, *_ALL_MODIFIERS}]
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
    operand = item[word]
    if word in RULE_WORDS:
        return parse_lay(word, operand, stage, at_s=at_s)
    if word in ADMIN_WORDS:
        within_s = _duration(item, "within") if "within" in item else AWAIT_BOUND_S
        return parse_admin(word, operand, stage, within_s=within_s, at_s=at_s)
    match word:
        case "await":
            within_s = _duration(item, "within") if "within" in item else AWAIT_BOUND_S
            return Await(
                condition=parse_condition(operand, stage=stage), within_s=within_s, at_s=at_s
            )
        case "wait":
            return Wait(for_s=_duration(item, "wait"), at_s=at_s)
        case "heal":
            name = _rule_name(operand, "heal takes 'all' or the name of a partition or a bandwidth")
            return Heal(at_s=at_s) if name == "all" else HealPartition(name=name, at_s=at_s)
        case "release" | "discard":
            name = _rule_name(operand, f"{word} takes the name of a rule")
            return Lift(name=name, discard=word == "discard", at_s=at_s)
        case "partition":
            return parse_partition(operand, stage, at_s=at_s)
        case "bandwidth":
            return parse_bandwidth(operand, stage, at_s=at_s)
        case "repeat" | "choose":
            return _build_block(word, item, stage, at_s=at_s)
        case _:
            return _build_act(Word(word), item, stage, at_s=at_s)


def _build_act(word: Word, item: Mapping[str, object], stage: Stage, *, at_s: float | None) -> Act:
    part = str(item.get("in", FlippedPart.SEGMENT))
    if part not in list(FlippedPart):
        raise SpecError(("in",), f"unknown part {part!r}; {did_you_mean(part, FlippedPart)}")
    seed = item.get("seed")
    if seed is not None and (not isinstance(seed, int) or isinstance(seed, bool)):
        raise SpecError(("seed",), f"expected a whole number, found {seed!r}")
    act = Act(
        word=word,
        target=parse_target(item[word], nodes=stage.nodes, keys=stage.keys),
        label=str(item.get("as", item.get("to", "snapshot"))) if word in _LABELLED else "snapshot",
        release=_release(item) if word in _STARTS else None,
        keep_directory_id=_flag(item, "keep_directory_id"),
        by_tool=_flag(item, "by_tool"),
        torn=_flag(item, "torn"),
        part=FlippedPart(part),
        seed=seed,
        hardship=parse_hardship(word, item),
        at_s=at_s,
    )
    return replace(act, stall_s=_duration(item, "by")) if "by" in item else act


def _release(item: Mapping[str, object]) -> str | None:
    if "to" not in item:
        return None
    try:
        return parse_release(item["to"])
    except SpecError as error:
        raise error.below("to") from None


def _flag(item: Mapping[str, object], key: str) -> bool:
    value = item.get(key, False)
    if not isinstance(value, bool):
        raise SpecError((key,), f"expected true or false, found {value!r}")
    return value


def _build_block(
    word: str, item: Mapping[str, object], stage: Stage, *, at_s: float | None
) -> Repeat | Choose:
    if word == "repeat":
        times = item["repeat"]
        if not isinstance(times, int) or isinstance(times, bool) or times < 1:
            raise SpecError((), f"expected a number of 1 or more, found {times!r}")
        if "steps" not in item:
            raise SpecError((), "repeat needs 'steps', a list of steps, beside it")
        try:
            return Repeat(times=times, steps=_parse_steps(item["steps"], stage), at_s=at_s)
        except SpecError as error:
            raise error.below("steps") from None
    options = item["choose"]
    if not isinstance(options, list) or not options:
        raise SpecError((), "expected a list of lists of steps")
    found = []
    for index, option in enumerate(options):
        try:
            found.append(_parse_steps(option, stage))
        except SpecError as error:
            raise error.below(index).below("choose") from None
    return Choose(options=tuple(found), at_s=at_s)


def _rule_name(operand: object, otherwise: str) -> str:
    if not isinstance(operand, str):
        raise SpecError((), f"{otherwise}, found {operand!r}")
    return operand


def _duration(item: Mapping[str, object], key: str) -> float:
    try:
        return duration_s(item[key])
    except SpecError as error:
        raise error.below(key) from None
