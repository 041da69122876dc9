"""A schedule as data: steps in order, each an act, an await with a bound, or a wait.

A play is checked whole before anything starts: unknown words, targets that cannot exist, abilities
the cluster lacks, and steps that contradict an earlier one (wiping a node that runs, releasing what
no rule holds) are refused with the path to the step. A random nemesis writes the play that it
performed in the same words, so that it can be replayed.

Each verb says what has to hold before it and what holds after (`nemesis.verbs.predicted_state`).
The steps of a loop are followed twice: what holds the second time holds every time. Of a choice
each option is followed, and what only some of them did is uncertain afterwards. So is
whatever a step names that cannot be read or cannot follow, so that one mistake is not found again
in later steps.

A step is a mapping of one word and its operand, with optional modifiers:

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

from fencepost.clusters.stage import Stage
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.steps import Choose, Gap, Repeat, starts_clients
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.registry import VERBS, verb_of
from fencepost.nemesis.verbs.step import Play, Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.words import did_you_mean, duration_text

_BLOCKS: Mapping[str, tuple[str, ...]] = {"repeat": ("steps",), "choose": ()}
"""The words that hold steps, with their modifiers."""
_WORDS = (*VERBS, *_BLOCKS)
_ALL_MODIFIERS = {"at", "steps", *(key for verb in VERBS.values() for key in verb.modifiers)}


def parse_play(data: object, stage: Stage) -> Play:
    """Return the steps of a play; raise SpecError with the paths to all that cannot be."""
    mistakes = Mistakes()
    play = _read_steps(data, stage, mistakes)
    with mistakes.below():
        refuse_contradictions(play, stage)
    mistakes.refuse()
    return play


def step_word(step: Step) -> str:
    """Return the word of a play for this step."""
    match step:
        case Repeat():
            return "repeat"
        case Choose():
            return "choose"
        case _:
            return verb_of(step).word


def step_data(step: Step) -> dict[str, object]:
    """Return the step as a play writes it; `parse_play` reads it back."""
    at: dict[str, object] = {} if step.at_s is None else {"at": duration_text(step.at_s)}
    match step:
        case Repeat(times=times, steps=steps):
            return at | {"repeat": times, "steps": [step_data(one) for one in steps]}
        case Choose(options=options):
            return at | {"choose": [[step_data(one) for one in option] for option in options]}
        case _:
            return at | verb_of(step).data(step)


def _parse_steps(data: object, stage: Stage) -> Play:
    mistakes = Mistakes()
    steps = _read_steps(data, stage, mistakes)
    mistakes.refuse()
    return steps


def _read_steps(data: object, stage: Stage, mistakes: Mistakes) -> Play:
    """Return the steps, with a gap for each that cannot be read."""
    if not isinstance(data, list):
        raise SpecError((), "a play is a list of steps")
    steps: list[Step] = []
    for index, item in enumerate(data):
        steps.append(Gap(written=item))
        with mistakes.below(index):
            steps[index] = _parse_step(item, stage)
    return tuple(steps)


def _parse_step(item: object, stage: Stage) -> Step:
    if not isinstance(item, dict):
        raise SpecError((), f"a step is a word and its operand, e.g. 'kill: {stage.nodes[-1]}'")
    words = [key for key in item if key in _WORDS]
    if len(words) != 1:
        mistakes = Mistakes()
        for key in map(str, item):
            if key not in {*_WORDS, *_ALL_MODIFIERS}:
                mistakes.note((key,), f"unknown word {key!r}; {did_you_mean(key, _WORDS)}")
        mistakes.refuse()
        raise SpecError((), f"a step has exactly one word; allowed: {', '.join(_WORDS)}")
    written = StepSource(word=str(words[0]), item=item, stage=stage)
    _refuse_modifiers(written)
    try:
        return _built(written)
    except SpecError as error:
        # Of several, which are of the steps of a block, all are placed.
        is_placed = bool(error.path) and error.path[0] in item
        raise (error if is_placed else error.below(written.word)) from None


def _refuse_modifiers(written: StepSource) -> None:
    word = written.word
    allowed = ("at", *(_BLOCKS[word] if word in _BLOCKS else VERBS[word].modifiers))
    mistakes = Mistakes()
    for key in written.item:
        if key != word and key not in allowed:
            found = f"{key!r} does not go with {word!r}; {did_you_mean(str(key), allowed)}"
            mistakes.note((str(key),), found)
    mistakes.refuse()


def _built(written: StepSource) -> Step:
    at_s = written.at_s
    match written.word:
        case "repeat":
            return replace(_repeat(written), at_s=at_s)
        case "choose":
            return replace(_choose(written), at_s=at_s)
        case word:
            step: Step = VERBS[word].parse(written)
            return step if at_s is None else replace(step, at_s=at_s)


def _repeat(written: StepSource) -> Repeat:
    times = written.operand
    if not isinstance(times, int) or isinstance(times, bool) or times < 1:
        raise SpecError((), f"expected a number of 1 or more, found {times!r}")
    if "steps" not in written.item:
        raise SpecError((), "repeat needs 'steps', a list of steps, beside it")
    steps = written.read("steps", lambda data: _parse_steps(data, written.stage))
    return Repeat(times=times, steps=steps)


def _choose(written: StepSource) -> Choose:
    options = written.operand
    if not isinstance(options, list) or not options:
        raise SpecError((), "expected a list of lists of steps")
    found, mistakes = [], Mistakes()
    for index, option in enumerate(options):
        with mistakes.below("choose", index):
            found.append(_parse_steps(option, written.stage))
    mistakes.refuse()
    return Choose(options=tuple(found))


def refuse_contradictions(play: Play, stage: Stage) -> None:
    """Raise SpecError with the paths to the steps that cannot follow on those before them."""
    predicted = PredictedState.at_the_start(stage)
    predicted.clients_wait = starts_clients(play)
    _follow_all(play, predicted)


def _follow_all(play: Play, predicted: PredictedState) -> None:
    mistakes = Mistakes()
    for index, step in enumerate(play):
        with mistakes.below(index):
            _follow(step, predicted)
    mistakes.refuse()


def _follow(step: Step, predicted: PredictedState) -> None:
    match step:
        case Gap(written=written):
            predicted.doubt(written)
        case Repeat(steps=steps, times=times):
            _follow_loop(steps, times, predicted)
        case Choose(options=options):
            _follow_choice(options, predicted)
        case _:
            verb = verb_of(step)
            try:
                verb.follow(step, predicted)
            except SpecError:
                predicted.doubt(verb.data(step))
                raise


def _follow_loop(steps: Play, times: int, predicted: PredictedState) -> None:
    mistakes = Mistakes()
    for _ in range(min(times, 2)):
        with mistakes.below("steps"):
            _follow_all(steps, predicted)
    mistakes.refuse()


def _follow_choice(options: tuple[Play, ...], predicted: PredictedState) -> None:
    mistakes, ways = Mistakes(), []
    for number, option in enumerate(options):
        ways.append(predicted.copy())
        with mistakes.below("choose", number):
            _follow_all(option, ways[-1])
    mistakes.refuse_after(lambda: predicted.join(ways))
