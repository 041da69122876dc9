"""What a play may do after what it has done: contradictions are refused before anything starts.

The nodes that are named are followed: a node must be down to be wiped, up to be killed. Targets
known only while the play runs (`leader of t-0`), and choices drawn from the seed, make every node's
state uncertain until `heal: all`. Which nodes are members, and which release each runs, is followed
likewise. Rules and partitions are followed by their names, which must be
laid before they are awaited or ended, and not twice at once. The steps of a loop are followed
twice: what holds the second time holds every time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from clusters.port import NodeName
from history.failure import SpecError
from nemesis.conditions import Condition, Down, rules_named
from nemesis.release_course import ReleaseCourse
from nemesis.stage import Stage
from nemesis.steps import (
    DISK_WORDS,
    Act,
    AddNodes,
    Await,
    Bandwidth,
    Choose,
    Finalise,
    Heal,
    HealPartition,
    Lay,
    Lift,
    Partition,
    Play,
    RemoveNodes,
    Repeat,
    Step,
    Word,
)
from nemesis.targets import NamedNodes
from nemesis.words import did_you_mean

__all__ = ["refuse_contradictions"]

_NEEDS_DOWN = {Word.START, Word.WIPE, Word.ROLLBACK, Word.FLIP_BIT}
_NEEDS_UP = {
    *(Word.KILL, Word.STOP, Word.RESTART, Word.PAUSE),
    *(Word.SKEW, Word.THROTTLE, Word.SQUEEZE),
}
_TROUBLED = "on a disk in trouble"
"""It may go on, and may die of it: whatever follows may be."""
_AFTER = {
    Word.KILL: "down",
    Word.STOP: "down",
    Word.CUT_POWER: "down",
    Word.START: "up",
    Word.RESTART: "up",
    Word.RESUME: "up",
    Word.PAUSE: "paused",
    **dict.fromkeys(DISK_WORDS - {Word.CUT_POWER}, _TROUBLED),
    Word.MEND_DISK: "up",
}


def refuse_contradictions(play: Play, stage: Stage) -> None:
    """SpecError with the path to the first step that cannot follow on those before it."""
    course = _Course(
        members={node for node in stage.nodes if node not in stage.spares},
        releases=ReleaseCourse.at_the_start(stage),
    )
    _follow_all(play, course)


@dataclass(slots=True)
class _Course:
    """What a play has done so far, as far as that is certain."""

    members: set[NodeName]
    releases: ReleaseCourse
    nodes: dict[NodeName, str] = field(default_factory=dict)
    certain: bool = True
    snapshots: set[str] = field(default_factory=set)
    rules: set[str] = field(default_factory=set)
    partitions: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    """Rules and partitions of choices: they may be there or not."""


def _follow_all(play: Play, course: _Course) -> None:
    for index, step in enumerate(play):
        try:
            _follow(step, course)
        except SpecError as error:
            raise error.below(index) from None


def _follow(step: Step, course: _Course) -> None:
    match step:
        case Act():
            _follow_act(step, course)
        case Heal():
            course.nodes, course.certain = {}, True
            course.rules.clear()
            course.partitions.clear()
            course.maybe.clear()
        case Finalise(version=version):
            course.releases.finalise(version, members=sorted(course.members))
        case AddNodes(nodes=nodes):
            _add(nodes, course)
        case RemoveNodes(nodes=nodes):
            _remove(nodes, course)
        case Repeat(steps=steps, times=times):
            _follow_loop(steps, times, course)
        case Choose(options=options):
            _follow_choice(options, course)
        case _:
            _follow_name(step, course)


def _follow_name(step: Step, course: _Course) -> None:
    """Rules and partitions, by their names."""
    match step:
        case Lay(name=name):
            _begin(name, course.rules, course, word="rule")
        case Partition(name=name):
            _begin(name, course.partitions, course, word="partition")
        case Bandwidth(name=name):
            _begin(name, course.partitions, course, word="partition or bandwidth")
        case Lift(name=name, discard=discard):
            _end(name, course.rules, course, path="discard" if discard else "release")
        case HealPartition(name=name):
            _end(name, course.partitions, course, path="heal")
        case Await(condition=condition):
            _follow_await(condition, course)
        case _:
            pass


def _follow_await(condition: Condition, course: _Course) -> None:
    for name in rules_named(condition):
        _require(name, course.rules, course, path="await")
    if isinstance(condition, Down) and course.nodes.get(condition.node) != _TROUBLED:
        course.nodes[condition.node] = "down"


def _follow_loop(steps: Play, times: int, course: _Course) -> None:
    try:
        for _ in range(min(times, 2)):
            _follow_all(steps, course)
    except SpecError as error:
        raise error.below("steps") from None


def _follow_choice(options: tuple[Play, ...], course: _Course) -> None:
    possible: list[_Course] = []
    for number, option in enumerate(options):
        drawn = _Course(
            members=set(course.members),
            releases=course.releases.copy(),
            nodes=dict(course.nodes),
            certain=course.certain,
            snapshots=set(course.snapshots),
            rules=set(course.rules),
            partitions=set(course.partitions),
            maybe=set(course.maybe),
        )
        try:
            _follow_all(option, drawn)
        except SpecError as error:
            raise error.below(number).below("choose") from None
        possible.append(drawn)
        course.snapshots |= drawn.snapshots
        changed = (drawn.rules ^ course.rules) | (drawn.partitions ^ course.partitions)
        course.maybe |= drawn.maybe | changed
    course.releases.join(drawn.releases for drawn in possible)
    course.members = _same_members(possible)
    course.certain = False


def _same_members(possible: Sequence[_Course]) -> set[NodeName]:
    """Who belongs to the cluster, whichever of the choices was drawn."""
    members = possible[0].members
    if any(drawn.members != members for drawn in possible):
        raise SpecError(
            ("choose",), "its choices leave different members; add and remove nodes in each alike"
        )
    return members


def _add(nodes: Sequence[NodeName], course: _Course) -> None:
    for node in nodes:
        if node in course.members:
            raise SpecError(("add",), f"{node} is a member already at this step")
        course.members.add(node)
        course.nodes[node] = "up"


def _remove(nodes: Sequence[NodeName], course: _Course) -> None:
    for node in nodes:
        _require_member(node, course, path="remove")
        course.members.discard(node)
        course.nodes[node] = "down"


def _require_member(node: NodeName, course: _Course, *, path: str) -> None:
    if node not in course.members:
        raise SpecError((path,), f"{node} is no member of the cluster at this step; add it first")


def _begin(name: str, open_names: set[str], course: _Course, *, word: str) -> None:
    if name in open_names and name not in course.maybe:
        raise SpecError((), f"a {word} named {name!r} is there already; give it another name: as")
    open_names.add(name)


def _end(name: str, open_names: set[str], course: _Course, *, path: str) -> None:
    _require(name, open_names, course, path=path)
    open_names.discard(name)


def _require(name: str, open_names: set[str], course: _Course, *, path: str) -> None:
    if name not in open_names and name not in course.maybe:
        there = did_you_mean(name, open_names) if open_names else "there is none at this step"
        raise SpecError((path,), f"no earlier step laid {name!r}; {there}")


def _follow_act(act: Act, course: _Course) -> None:
    if act.word is Word.SNAPSHOT:
        course.snapshots.add(act.label)
    if act.word is Word.ROLLBACK and act.label not in course.snapshots:
        raise SpecError(("rollback",), f"no earlier step takes a snapshot {act.label!r}")
    if act.release is not None:
        course.releases.moved(act.target, act.release)
    if not isinstance(act.target, NamedNodes):
        course.certain = False
        return
    for node in act.target.nodes:
        if act.word is Word.WIPE and node not in course.members:
            continue  # who was removed may lose its disk before it is added anew
        _require_member(node, course, path=str(act.word))
        if course.certain:
            _follow_node(act.word, node, course.nodes)


def _follow_node(word: Word, node: NodeName, state: dict[NodeName, str]) -> None:
    now = state.get(node, "up")
    if now == _TROUBLED:
        state[node] = "up" if word is Word.MEND_DISK else now
        return
    if word is Word.MEND_DISK:
        raise SpecError((str(word),), f"{node}: no earlier step brings trouble to its disk")
    if word in _NEEDS_DOWN and now != "down":
        raise SpecError((str(word),), f"{node} is {now} at this step; kill or stop it first")
    if word in _NEEDS_UP and now == "down":
        raise SpecError((str(word),), f"{node} is down already at this step")
    if word is Word.PAUSE and now == "paused":
        raise SpecError((str(word),), f"{node} is paused already at this step")
    if word is Word.RESUME and now != "paused":
        raise SpecError((str(word),), f"{node} is {now} at this step; pause it first")
    state[node] = _AFTER.get(word, now)
