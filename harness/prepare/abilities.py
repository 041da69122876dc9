"""The abilities that a schedule asks of a cluster and its host, and the refusal if they lack any.

It is refused before anything starts, with the word and its place: what a cluster can do is a matter
of its class (`clusters.abilities`), and its networks are the host's. No step and no kind of fault
goes unasked, so that an interpreter never meets one that it would have to leave out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.abilities import DisturbsPackets
from fencepost.clusters.evolution import ChangesMembers
from fencepost.clusters.hosts.bandwidth import why_no_limits
from fencepost.clusters.hosts.packets import why_no_rules
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import Cluster
from fencepost.clusters.system import Make
from fencepost.harness.scenario.options import HostKind
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.play import step_word
from fencepost.nemesis.steps import Choose, Repeat, places
from fencepost.nemesis.verbs.registry import EPISODES, verb_of
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.verb import Capabilities
from fencepost.nemesis.wire.carried import why_not_carried, why_not_simulated
from fencepost.nemesis.wire.rules import Action, Match

_ALONE: Final = "it takes two nodes, and there is one"
_NO_WIRE: Final = "it takes the proxy on the links: run it without --no-wire"


@dataclass(frozen=True, slots=True, kw_only=True)
class There:
    """The cluster and the host on which a schedule is to be performed."""

    make: Make
    host: HostKind = HostKind.LOCAL
    wired: bool = True
    """True if there is a proxy on the links between nodes."""
    protocols: frozenset[LinkProtocol] = frozenset((LinkProtocol.KAFKA,))
    """The protocols that they carry."""

    def lacks(self, *abilities: type) -> str | None:
        """Name the first of these abilities that the cluster lacks; None if it has them all."""
        missing = (one for one in abilities if not issubclass(self._cluster, one))
        return next((f"it lacks the ability {one.__name__}" for one in missing), None)

    @property
    def why_no_wire(self) -> str | None:
        """The reason why no step can act on the traffic of links; None if steps can."""
        return None if self.wired else _NO_WIRE

    @property
    def why_no_clients(self) -> str | None:
        """The reason why no step can act on client processes; None if steps can."""
        return "its clients are not processes" if self.make.in_virtual_time else None

    @property
    def why_not_here(self) -> str | None:
        """The reason why files and processes of this machine are out of reach; None if not."""
        is_elsewhere = self.host is HostKind.SSH
        return (
            "it acts on files and processes of this machine, and the nodes run on others"
            if is_elsewhere
            else None
        )

    def why_no_rule(self, action: Action, match: Match) -> str | None:
        """Return the reason why the wire cannot have such a rule; None if it can."""
        unfit = why_not_simulated(action, match) if self.make.in_virtual_time else None
        return unfit or why_not_carried(action, match, self.protocols)

    @property
    def why_no_packets(self) -> str | None:
        """The reason, with the way out, why no step can act on packets; None if steps can."""
        if not issubclass(self._cluster, DisturbsPackets):
            return "its nodes exchange no packets"
        if not self.host.has_networks:
            return "its nodes share this machine's network: run it with --host netns or docker"
        return why_no_rules() or why_no_limits()

    @property
    def why_no_cut(self) -> str | None:
        """The reason why no flow between nodes can be cut by any means; None if one can be."""
        return None if self.wired or self.why_no_packets is None else _NO_WIRE

    @property
    def _cluster(self) -> type[Cluster]:
        return self.make.driver.cluster


def refuse_missing_abilities(scenario: Scenario, there: There) -> None:
    """Raise UsageError with the places of all that cannot be done there."""
    mistakes = Mistakes()
    for place, word, why in _asked(scenario, there):
        if why is not None:
            mistakes.note(place, f"{word}: this cluster cannot do that: {why}")
    try:
        mistakes.refuse()
    except SpecError as error:
        raise scenario.document.error(error) from None


def _asked(
    scenario: Scenario, there: Capabilities
) -> Iterator[tuple[tuple[str | int, ...], str, str | None]]:
    """Yield all that the scenario does to its cluster: place, word, and the obstacle or None."""
    for key in ("spare_controllers", "spare_brokers"):
        if getattr(scenario.cluster, key, 0):
            yield ("cluster", key), key, there.lacks(ChangesMembers)
    for index, kind in enumerate(scenario.mix.faults if scenario.mix is not None else ()):
        why = _why_not_alone(kind, scenario) or _why_not_drawn(kind, there)
        yield ("nemesis", "faults", index), kind, why
    for place, step in places(scenario.play or ()):
        yield ("play", *place), step_word(step), why_not(step, there)


def needs(scenario: Scenario, there: There) -> tuple[str, ...]:
    """Return the abilities that its faults take of a cluster and of its host, by name."""
    asked = _Asked(there)
    for _ in _asked(scenario, asked):
        pass
    prerequisites = (str(one.value) for one in scenario.prerequisites)
    return tuple(sorted({*asked.names, *prerequisites}))


class _Asked:
    """`Capabilities` that remember what they were asked."""

    def __init__(self, there: There) -> None:
        self._there = there
        self.names: set[str] = set()

    def lacks(self, *abilities: type) -> str | None:
        self.names |= {one.__name__ for one in abilities}
        return self._there.lacks(*abilities)

    def why_no_rule(self, action: Action, match: Match) -> str | None:
        return self._there.why_no_rule(action, match)

    @property
    def why_no_wire(self) -> str | None:
        return self._noted("proxy", self._there.why_no_wire)

    @property
    def why_no_packets(self) -> str | None:
        return self._noted("packets", self._there.why_no_packets)

    @property
    def why_no_cut(self) -> str | None:
        return self._noted("proxy or packets", self._there.why_no_cut)

    @property
    def why_no_clients(self) -> str | None:
        return self._noted("client processes", self._there.why_no_clients)

    @property
    def why_not_here(self) -> str | None:
        return self._noted("nodes on this machine", self._there.why_not_here)

    def _noted(self, name: str, why: str | None) -> str | None:
        self.names.add(name)
        return why


def why_not(step: Step, there: Capabilities) -> str | None:
    """Return the reason why this step cannot be done there; None if it can.

    A block has none: each of its steps is asked about.
    """
    return None if isinstance(step, Repeat | Choose) else verb_of(step).why_not(step, there)


def _why_not_alone(kind: str, scenario: Scenario) -> str | None:
    is_alone = len(scenario.cluster.nodes) == 1
    return _ALONE if is_alone and EPISODES[kind].between_nodes else None


def _why_not_drawn(kind: str, there: Capabilities) -> str | None:
    found = (why_not(step, there) for step in EPISODES[kind].example())
    return next(filter(None, found), None)
