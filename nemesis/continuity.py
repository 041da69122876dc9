"""Continuity of a play: a step that contradicts an earlier one is refused before anything starts.

Each verb says what has to hold before it and what holds after (`nemesis.verbs.course`). The steps
of a loop are followed twice: what holds the second time holds every time. Of a choice each option
is followed, and what only some of them did is uncertain afterwards. So is whatever a step names
that cannot be read or cannot follow, so that one mistake is not found again in later steps.
"""

from clusters.stage import Stage
from history.failure import Mistakes, SpecError
from nemesis.steps import Choose, Gap, Play, Repeat, Step, starts_clients
from nemesis.verbs.course import PlayCourse
from nemesis.verbs.registry import verb_of

__all__ = ["refuse_contradictions"]


def refuse_contradictions(play: Play, stage: Stage) -> None:
    """Raise SpecError with the paths to the steps that cannot follow on those before them."""
    course = PlayCourse.at_the_start(stage)
    course.clients_wait = starts_clients(play)
    _follow_all(play, course)


def _follow_all(play: Play, course: PlayCourse) -> None:
    mistakes = Mistakes()
    for index, step in enumerate(play):
        with mistakes.below(index):
            _follow(step, course)
    mistakes.refuse()


def _follow(step: Step, course: PlayCourse) -> None:
    match step:
        case Gap(written=written):
            course.doubt(written)
        case Repeat(steps=steps, times=times):
            _follow_loop(steps, times, course)
        case Choose(options=options):
            _follow_choice(options, course)
        case _:
            verb = verb_of(step)
            try:
                verb.follow(step, course)
            except SpecError:
                course.doubt(verb.data(step))
                raise


def _follow_loop(steps: Play, times: int, course: PlayCourse) -> None:
    mistakes = Mistakes()
    for _ in range(min(times, 2)):
        with mistakes.below("steps"):
            _follow_all(steps, course)
    mistakes.refuse()


def _follow_choice(options: tuple[Play, ...], course: PlayCourse) -> None:
    mistakes, ways = Mistakes(), []
    for number, option in enumerate(options):
        ways.append(course.copy())
        with mistakes.below("choose", number):
            _follow_all(option, ways[-1])
    mistakes.refuse_after(lambda: course.join(ways))
