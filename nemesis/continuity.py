"""What a play may do after what it has done: contradictions are refused before anything starts.

Each verb says what has to hold before it and what holds after (`nemesis.verbs.course`). The steps
of a loop are followed twice: what holds the second time holds every time. Of a choice each option
is followed, and what only some of them did is uncertain afterwards.
"""

from clusters.stage import Stage
from history.failure import SpecError
from nemesis.steps import Choose, Play, Repeat, Step
from nemesis.verbs.course import PlayCourse
from nemesis.verbs.registry import verb_of

__all__ = ["refuse_contradictions"]


def refuse_contradictions(play: Play, stage: Stage) -> None:
    """SpecError with the path to the first step that cannot follow on those before it."""
    _follow_all(play, PlayCourse.at_the_start(stage))


def _follow_all(play: Play, course: PlayCourse) -> None:
    for index, step in enumerate(play):
        try:
            _follow(step, course)
        except SpecError as error:
            raise error.below(index) from None


def _follow(step: Step, course: PlayCourse) -> None:
    match step:
        case Repeat(steps=steps, times=times):
            _follow_loop(steps, times, course)
        case Choose(options=options):
            _follow_choice(options, course)
        case _:
            verb_of(step).follow(step, course)


def _follow_loop(steps: Play, times: int, course: PlayCourse) -> None:
    try:
        for _ in range(min(times, 2)):
            _follow_all(steps, course)
    except SpecError as error:
        raise error.below("steps") from None


def _follow_choice(options: tuple[Play, ...], course: PlayCourse) -> None:
    ways = []
    for number, option in enumerate(options):
        way = course.copy()
        try:
            _follow_all(option, way)
        except SpecError as error:
            raise error.below(number).below("choose") from None
        ways.append(way)
    course.join(ways)
