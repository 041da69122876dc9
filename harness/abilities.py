"""What a schedule asks of a cluster and its host, and the refusal of what these cannot do.

It is refused before anything starts, with the word and its place: what a cluster can do is a matter
of its class (`clusters.abilities`), and its networks are the host's. No step and no kind of fault
goes unasked, so that an interpreter never meets one that it would have to leave out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, assert_never

from clusters.abilities import DisturbsPackets, FormatsByTool, LogEnds
from clusters.evolution import ChangesMembers, ChangesReleases
from clusters.hosts.bandwidth import why_no_limits
from clusters.hosts.packets import why_no_rules
from clusters.port import Cluster
from clusters.reference.simulated import SimulatedCluster
from harness.operator import ability_for
from harness.options import HostKind
from harness.scenario import Scenario
from history.failure import SpecError
from nemesis.conditions import Registered, log_ends_asked
from nemesis.mix import EPISODE_WORDS
from nemesis.play import step_word
from nemesis.simulated.wire import why_no_such_rule
from nemesis.steps import (
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
    Means,
    MoveLeader,
    Partition,
    Reassign,
    RemoveNodes,
    Repeat,
    Step,
    Wait,
    Word,
    places,
)
from nemesis.verbs.catalogue import ABILITIES

__all__ = ["There", "refuse_missing_abilities", "why_not"]

_ON_THIS_MACHINE: Final = frozenset({Word.SKEW, Word.THROTTLE, Word.SQUEEZE, Word.FLIP_BIT})
"""What is done to files and processes of this machine, wherever else the nodes may be."""
_NO_WIRE: Final = "it takes the proxy on the links: run it without --no-wire"


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """Where a schedule is to be performed."""

    cluster: type[Cluster]
    host: HostKind = HostKind.LOCAL
    wired: bool = True
    """There is a proxy on the links between nodes."""

    def lacks(self, *abilities: type) -> str | None:
        """Why it cannot do what takes these, by the first that it has not; None if it can."""
        missing = (one for one in abilities if not issubclass(self.cluster, one))
        return next((f"it lacks the ability {one.__name__}" for one in missing), None)

    @property
    def why_no_packets(self) -> str | None:
        """Why nothing can be done to packets, with the way out; None if it can."""
        if not issubclass(self.cluster, DisturbsPackets):
            return "its nodes have no packets"
        if not self.host.has_networks:
            return "its nodes share this machine's network: run it with --host netns or docker"
        return why_no_rules() or why_no_limits()

    @property
    def why_no_cut(self) -> str | None:
        """Why no flow between nodes can be cut by whatever there is; None if it can."""
        return None if self.wired or self.why_no_packets is None else _NO_WIRE


def refuse_missing_abilities(scenario: Scenario, there: There) -> None:
    """UsageError with the place of the first thing that cannot be done there."""
    for place, word, why in _asked(scenario, there):
        if why is not None:
            words = f"{word}: this cluster cannot do that: {why}"
            raise scenario.document.error(SpecError(place, words))


def _asked(
    scenario: Scenario, there: There
) -> Iterator[tuple[tuple[str | int, ...], str, str | None]]:
    """Everything that the scenario does to its cluster: where, what, and why it cannot be."""
    for key in ("spare_controllers", "spare_brokers"):
        if getattr(scenario.cluster, key):
            yield ("cluster", key), key, there.lacks(ChangesMembers)
    for index, kind in enumerate(scenario.mix.faults if scenario.mix is not None else ()):
        yield ("nemesis", "faults", index), kind, _why_not_drawn(kind, there)
    for place, step in places(scenario.play or ()):
        yield ("play", *place), step_word(step), why_not(step, there)


def why_not(step: Step, there: There) -> str | None:
    """Why this step cannot be done there; None if it can."""
    match step:
        case Act():
            return _why_not_act(step, there)
        case Await(condition=Registered()):
            return None if there.wired else _NO_WIRE
        case Await(condition=condition):
            return there.lacks(LogEnds) if log_ends_asked(condition) else None
        case Lay():
            return _why_not_laid(step, there)
        case Bandwidth() | Partition(by=Means.PACKETS):
            return there.why_no_packets
        case Partition(by=None):
            return there.why_no_cut
        case Partition():
            return None if there.wired else _NO_WIRE
        case CreateTopic() | MoveLeader() | Reassign() | Finalise() | AddNodes() | RemoveNodes():
            return there.lacks(ability_for(step))
        case Wait() | Heal() | HealPartition() | Lift():
            return None  # it ends what was done before
        case Repeat() | Choose():
            return None  # its own steps are asked about one by one
    assert_never(step)


def _why_not_act(act: Act, there: There) -> str | None:
    further = (
        *(() if act.release is None else (ChangesReleases,)),
        *((FormatsByTool,) if act.by_tool else ()),
    )
    return _why_not_word(act.word, there) or there.lacks(*further)


def _why_not_word(word: Word, there: There) -> str | None:
    if there.host is HostKind.SSH and word in _ON_THIS_MACHINE:
        return "it is done on this machine, and the nodes are on others"
    return there.lacks(*ABILITIES[word])


def _why_not_laid(step: Lay, there: There) -> str | None:
    if not there.wired:
        return _NO_WIRE
    if issubclass(there.cluster, SimulatedCluster):
        return why_no_such_rule(step.action, step.match)
    return None


def _why_not_drawn(kind: str, there: There) -> str | None:
    match kind:
        case "delay":
            return None if there.wired else _NO_WIRE
        case "partition":
            return there.why_no_cut
        case "packets" | "bandwidth":
            return there.why_no_packets
        case _:
            found = (_why_not_word(word, there) for word in EPISODE_WORDS[kind])
            return next(filter(None, found), None)
