"""The steps of a play as values: the interpreter says what each does, `play` how it is written."""

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from clusters.abilities import Skew
from clusters.port import FlippedPart, NodeName, TopicSpec
from nemesis.conditions import Condition
from nemesis.targets import Target
from nemesis.topology import Cut
from nemesis.wire.rules import Action, Match

__all__ = [
    "AWAIT_BOUND_S",
    "DISK_WORDS",
    "Act",
    "AddNodes",
    "Admin",
    "Await",
    "Bandwidth",
    "Choose",
    "CreateTopic",
    "Finalise",
    "Hardship",
    "Heal",
    "HealPartition",
    "Lay",
    "Lift",
    "Means",
    "MoveLeader",
    "Parties",
    "Partition",
    "Play",
    "Reassign",
    "RemoveNodes",
    "Repeat",
    "Room",
    "Share",
    "Step",
    "Wait",
    "Word",
    "dealt",
    "flat",
    "places",
    "uses_clients",
    "uses_disks",
    "words_of",
]

AWAIT_BOUND_S = 30.0
"""An await without `within`: longer than a session time-out, an election and a restart together."""


class Word(StrEnum):
    """What an act does to its nodes."""

    KILL = "kill"
    STOP = "stop"
    START = "start"
    RESTART = "restart"
    """Stop and start, each node in turn: the next one once this one is back."""
    PAUSE = "pause"
    RESUME = "resume"
    WIPE = "wipe"
    SNAPSHOT = "snapshot"
    ROLLBACK = "rollback"
    CUT_POWER = "cut_power"
    FILL_DISK = "fill_disk"
    LOCK_DISK = "lock_disk"
    FAIL_DISK = "fail_disk"
    STALL_DISK = "stall_disk"
    SLOW_DISK = "slow_disk"
    MEND_DISK = "mend_disk"
    FLIP_BIT = "flip_bit"
    SKEW = "skew"
    UNSKEW = "unskew"
    THROTTLE = "throttle"
    UNTHROTTLE = "unthrottle"
    SQUEEZE = "squeeze"
    UNSQUEEZE = "unsqueeze"


DISK_WORDS = frozenset(
    {
        Word.CUT_POWER,
        Word.FILL_DISK,
        Word.LOCK_DISK,
        Word.FAIL_DISK,
        Word.STALL_DISK,
        Word.SLOW_DISK,
    }
)
"""What needs a disk of the node's own, where nodes are processes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """How much processor time a throttled node gets."""

    of_a_core: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much memory a squeezed node gets beyond its heap."""

    size_bytes: int


Hardship = Skew | Share | Room
"""How hard it is made for a node, by skew, throttle and squeeze."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Do `word` to the target."""

    word: Word
    target: Target
    label: str = "snapshot"
    """Which snapshot, for snapshot and rollback."""
    keep_directory_id: bool = False
    """For wipe: the disk is empty, and Kafka takes it for the one it was."""
    release: str | None = None
    """For start and restart: the release that the node runs from then on; None: the one it ran."""
    by_tool: bool = False
    """For wipe: the release's own tool formats the disk, which is not synced then."""
    torn: bool = False
    """For cut_power: parts of some logs, drawn from the seed, are on the disk all the same."""
    part: FlippedPart = FlippedPart.SEGMENT
    """For flip_bit."""
    stall_s: float = 0.2
    """For slow_disk: how long each stall takes."""
    seed: int | None = None
    """What is drawn for a torn log or a flipped bit; None until it is performed."""
    hardship: Hardship | None = None
    kind: str = ""
    """Of the mix's episode that it is a part of; empty: a play's own word says it."""
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
    """Undo whatever is broken: release, unblock, resume what is paused, start what is down."""

    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """One end of the links that a rule concerns: all, the clients, or nodes to be resolved."""

    target: Target | None = None
    clients: bool = False

    @property
    def anybody(self) -> bool:
        """Whether no end was stated."""
        return self.target is None and not self.clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Lay:
    """Lay a rule on the wire: it concerns matching frames from now on."""

    name: str
    action: Action
    match: Match
    """Without its sources and targets: these are resolved when the rule is laid."""
    source: Parties = field(default_factory=Parties)
    target: Parties = field(default_factory=Parties)
    kind: str = ""
    """Of the mix's episode that it is a part of; empty: a play's own word says it."""
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lift:
    """Take a rule away. What it holds is delivered in order, or discarded."""

    name: str
    discard: bool = False
    at_s: float | None = None


class Means(StrEnum):
    """What cuts a partition."""

    PROXY = "proxy"
    """The proxy passes nothing on: who sends sees a connection that is there, and waits."""
    PACKETS = "packets"
    """Rules in the nodes' own networks drop each packet, acknowledgements of TCP's included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Cut the network between nodes, until it is healed by its name."""

    name: str
    cut: Cut
    by: Means | None = None
    """None: the proxy where there is one, else packets."""
    kind: str = ""
    """Of the mix's episode that it is a part of; empty: a play's own word says it."""
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandwidth:
    """Bound what each of these nodes may send, until it is healed by its name."""

    name: str
    target: Target
    bits_per_s: int
    kind: str = ""
    """Of the mix's episode that it is a part of; empty: a play's own word says it."""
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealPartition:
    """Undo the partition, or the bound on bandwidth, of this name."""

    name: str
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic:
    """Have a topic created by a node that is asked for it; clients need not know it."""

    topic: TopicSpec
    via: NodeName | None = None
    """None: the active controller."""
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLeader:
    """Make a broker the leader of a key, by reassignment and preferred election."""

    leaders: Mapping[str, int]
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassign:
    """Give a key other replicas, and wait until the reassignment is done."""

    replicas: Mapping[str, tuple[int, ...]]
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finalise:
    """Have the cluster use what a metadata.version allows, or no more than that."""

    version: str
    """E.g. "4.3" or "3.9-IV0": the level of each feature becomes that of a new cluster of it."""
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AddNodes:
    """Take nodes that are no members into the cluster."""

    nodes: tuple[NodeName, ...]
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveNodes:
    """Take nodes out of the cluster for good: moved off, stopped, and no longer registered."""

    nodes: tuple[NodeName, ...]
    within_s: float = AWAIT_BOUND_S
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """The same steps again and again."""

    times: int
    steps: "Play"
    at_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choose:
    """One of several lists of steps, drawn from the seed."""

    options: tuple["Play", ...]
    at_s: float | None = None


Admin = CreateTopic | MoveLeader | Reassign | Finalise | AddNodes | RemoveNodes
Step = (
    Act
    | Await
    | Wait
    | Heal
    | Lay
    | Lift
    | Partition
    | Bandwidth
    | HealPartition
    | CreateTopic
    | MoveLeader
    | Reassign
    | Finalise
    | AddNodes
    | RemoveNodes
    | Repeat
    | Choose
)
Play = tuple[Step, ...]


def dealt(play: Play, draw: random.Random) -> Iterator[tuple[str, Step]]:
    """Each step to perform with its number, e.g. `4` or `4.2`; choices are drawn on the way."""
    for number, step in enumerate(play, start=1):
        if isinstance(step, Repeat | Choose) and step.at_s is not None:
            yield str(number), Wait(for_s=0.0, at_s=step.at_s)
        match step:
            case Repeat(steps=steps, times=times):
                for _ in range(times):
                    yield from ((f"{number}.{inner}", one) for inner, one in dealt(steps, draw))
            case Choose(options=options):
                chosen = dealt(draw.choice(options), draw)
                yield from ((f"{number}.{inner}", one) for inner, one in chosen)
            case _:
                yield str(number), step


def flat(play: Iterable[Step]) -> Iterable[Step]:
    """Every step that a play may perform, those of loops and choices once each."""
    for step in play:
        match step:
            case Repeat(steps=steps):
                yield from flat(steps)
            case Choose(options=options):
                for option in options:
                    yield from flat(option)
            case _:
                yield step


def places(play: Iterable[Step]) -> Iterator[tuple[tuple[str | int, ...], Step]]:
    """Each step of `flat`, with where the document has it below the play."""
    for index, step in enumerate(play):
        match step:
            case Repeat(steps=steps):
                for place, one in places(steps):
                    yield (index, "steps", *place), one
            case Choose(options=options):
                for number, option in enumerate(options):
                    for place, one in places(option):
                        yield (index, "choose", number, *place), one
            case _:
                yield (index,), step


def words_of(play: Iterable[Step]) -> frozenset[Word]:
    """The words of all acts that a play may perform."""
    return frozenset(step.word for step in flat(play) if isinstance(step, Act))


def uses_disks(play: Iterable[Step]) -> bool:
    """Whether some step does what only a disk of the node's own can do."""
    return any(isinstance(step, Act) and step.word in DISK_WORDS for step in flat(play))


def uses_clients(play: Iterable[Step]) -> bool:
    """Whether some step concerns the links of the clients, which then go through the proxy too."""
    for step in flat(play):
        match step:
            case Lay(source=source, target=target) if source.clients or target.clients:
                return True
            case Partition(cut=cut) if cut.concerns_clients:
                return True
            case _:
                pass
    return False
