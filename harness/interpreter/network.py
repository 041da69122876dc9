"""The performance of a play's network faults: rules on the wire, and partitions.

A rule is a fault from the moment it is laid; its effect is seen with the first frame that it
concerned, and it ends when it is lifted.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from fencepost.clusters.abilities import DisturbsPackets
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.port import CLIENTS, Cluster, NodeName, role_name
from fencepost.clusters.targets import NotNowError
from fencepost.harness.interpreter.books import FaultBook, Played
from fencepost.harness.interpreter.cutting import Cutter
from fencepost.history.failure import HarnessError
from fencepost.nemesis.targets import NamedNodes, Scene, resolve
from fencepost.nemesis.topology import Flows, cut_off, flows_of
from fencepost.nemesis.verbs.bandwidth import Bandwidth
from fencepost.nemesis.verbs.heal import HealPartition
from fencepost.nemesis.verbs.lift import Lift
from fencepost.nemesis.verbs.partition import Means, Partition
from fencepost.nemesis.verbs.registry import kind_of, verb_of
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import Parties, Step
from fencepost.nemesis.wire.port import BreaksNetwork
from fencepost.nemesis.wire.rules import (
    Clause,
    Delay,
    Direction,
    Flow,
    Match,
    Operator,
    Rule,
    Watch,
)
from fencepost.nemesis.wire.status import WireStatus

_NOTHING: Final = WireStatus(rules={}, withheld_bytes={}, connection_count={})


@dataclass(slots=True, kw_only=True)
class _OpenRule:
    index: int | None
    """The index of its row of `faults`; None: it only watches."""
    label: str
    seen: bool = False


class Network:
    """The only place that breaks the network during a run. `wire` None: the cluster has none."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        wire: BreaksNetwork | None,
        cutters: Mapping[Means, Cutter],
        journal: FaultBook,
        played: Played,
    ) -> None:
        self._cluster = cluster
        self._wire = wire
        self._journal = journal
        self._played = played
        self._rules: dict[str, _OpenRule] = {}
        self._partitions = _Partitions(cluster, cutters=cutters, journal=journal, played=played)
        self._topic_ids: dict[str, str] = {}

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The labels of the open faults, e.g. `hold join`."""
        rules = (rule.label for rule in self._rules.values() if rule.index is not None)
        return (*rules, *self._partitions.open_labels)

    @property
    def is_broken(self) -> bool:
        """Whether a rule that has concerned a frame is laid, or a partition or a bound is open."""
        rules = self._rules.values()
        seen = any(rule.seen for rule in rules if rule.index is not None)
        return seen or bool(self._partitions.open_labels)

    def count_registrations(self) -> None:
        """Have the wire, if there is one, count the registrations of each broker."""
        for node in self._cluster.nodes:
            if self._wire is not None and role_name(node) == Role.BROKER:
                self._wire.add(registration_watch(node))

    def status(self) -> WireStatus:
        """Return the counts of the wire so far; without a wire, empty ones."""
        return _NOTHING if self._wire is None else self._wire.status()

    def misread(self) -> list[str]:
        """Return one sentence if the proxy cut connections that it could not follow, else none.

        The proxy caused the fate of these connections, not the schedule.
        """
        status = self.status()
        if not status.broken_count:
            return []
        last = status.broken[-1]
        return [f"the proxy cut {status.broken_count} connections that it cannot read; at {last}"]

    def name_topics(self, topic_ids: Mapping[str, str]) -> None:
        """Tell the wire the topics' names by their ids, so that rules and the tape can use them."""
        if self._wire is not None and not topic_ids.items() <= self._topic_ids.items():
            self._topic_ids |= topic_ids
            self._wire.name_topics(topic_ids)

    def perform(self, step: Step, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Do what the step says, and see its effect or its end."""
        match step:
            case Lay():
                self.lay(step, scene=scene, draw=draw, now_s=now_s)
            case Lift():
                self.lift(step, now_s=now_s)
            case Partition():
                self._partitions.cut(step, scene=scene, draw=draw, now_s=now_s)
            case Bandwidth():
                self._partitions.limit(step, scene=scene, draw=draw, now_s=now_s)
            case HealPartition():
                self._partitions.heal(step, now_s=now_s)
            case _:
                raise AssertionError(step)

    def lay(self, step: Lay, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Lay the rule: from now on it concerns what matches."""
        wire = self._require_wire()
        if step.name in self._rules:
            raise NotNowError(f"a rule named {step.name} is active already")
        source = _resolved(step.source, scene, draw)
        target = _resolved(step.target, scene, draw)
        action = step.action
        if isinstance(action, Delay) and action.seed is None:
            action = replace(action, seed=draw.getrandbits(32))
        self._played.note(step, action=action, source=source, target=target, at_s=now_s)
        word = verb_of(step).word
        ends = [str(node) for node in dict.fromkeys((*_ends(source), *_ends(target)))]
        index = None
        if not isinstance(step.action, Watch):
            index = self._journal.begin(word, ends, kind=kind_of(step))
        match = replace(step.match, sources=_ends(source), targets=_ends(target))
        wire.add(Rule(name=step.name, action=action, match=match))
        self._rules[step.name] = _OpenRule(index=index, label=f"{word} {step.name}")

    def lift(self, step: Lift, *, now_s: float) -> None:
        """End the rule; what it holds is delivered in order, or dropped."""
        wire = self._require_wire()
        rule = self._rules.get(step.name)
        if rule is None:
            raise NotNowError(f"cannot {step.word} {step.name}: no such rule is active")
        self._played.note(step, at_s=now_s)
        self.settle()
        if step.discard:
            evidence = f"{_frames(wire.discard(step.name))} dropped"
        else:
            delivery = wire.release(step.name)
            evidence = f"{_frames(delivery.delivered)} delivered"
            if delivery.undeliverable:
                evidence += f", {delivery.undeliverable} undeliverable: their receivers are gone"
        del self._rules[step.name]
        if rule.index is not None:
            self._journal.end(rule.index, evidence)

    def heal_all(self, *, now_s: float) -> None:
        """End every rule, every partition and every bound."""
        for name in list(self._rules):
            self.lift(Lift(name=name), now_s=now_s)
        self._partitions.heal_all(now_s=now_s)

    def settle(self) -> None:
        """Note the effect of each rule that has concerned its first frame."""
        waiting = [
            name for name, rule in self._rules.items() if rule.index is not None and not rule.seen
        ]
        if not waiting:
            return
        rules = self.status().rules
        for name in waiting:
            status, rule = rules.get(name), self._rules[name]
            if status is not None and status.matched_count and rule.index is not None:
                rule.seen = True
                self._journal.effect(rule.index, status.first or "it concerned a frame")

    def _require_wire(self) -> BreaksNetwork:
        if self._wire is None:
            raise HarnessError("this run has no proxy between its nodes; run it without --no-wire")
        return self._wire


def registration_watch(broker: NodeName) -> Rule:
    """Return the rule that counts the registrations granted to this broker; see `watch_name`."""
    granted = Clause(field="error", operator=Operator.IS, value="NONE")
    match = Match(
        direction=Direction.RESPONSE,
        api="BrokerRegistration",
        sources=(broker,),
        where=(granted,),
    )
    return Rule(name=watch_name(broker), action=Watch(), match=match)


def watch_name(broker: NodeName) -> str:
    """Return the name of the rule that counts a broker's registrations."""
    return f"registered:{broker}"


def _resolved(parties: Parties, scene: Scene, draw: random.Random) -> Parties:
    if parties.target is None:
        return parties
    return Parties(target=NamedNodes(nodes=resolve(parties.target, scene, draw)))


def _ends(parties: Parties) -> tuple[NodeName, ...]:
    if parties.clients:
        return (CLIENTS,)
    return parties.target.nodes if isinstance(parties.target, NamedNodes) else ()


@dataclass(slots=True, kw_only=True)
class _OpenPartition:
    index: int
    flows: frozenset[Flow]
    by: Means


@dataclass(slots=True, kw_only=True)
class _OpenBound:
    index: int
    nodes: tuple[NodeName, ...]


class _Partitions:
    """The cuts and the limits that are open now."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        cutters: Mapping[Means, Cutter],
        journal: FaultBook,
        played: Played,
    ) -> None:
        self._cluster = cluster
        self._cutters = cutters
        self._journal = journal
        self._played = played
        self._open: dict[str, _OpenPartition] = {}
        self._bounds: dict[str, _OpenBound] = {}

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The labels of the cuts and limits that are open now."""
        cuts = (f"partition {name}" for name in self._open)
        return (*cuts, *(f"bandwidth {name}" for name in self._bounds))

    def cut(self, step: Partition, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Cut the flows, and see that they are cut."""
        by, cutter = self._cutter(step)
        self._refuse_taken(step.name)
        flows = flows_of(step.cut, scene, draw)
        # Always stated: a replay may have a proxy where this run has none.
        stated = by if by is Means.PACKETS else step.by
        self._played.note(step, cut=Flows(flows=flows), by=stated, at_s=now_s)
        index = self._journal.begin("partition", _lost(flows, scene), kind=kind_of(step))
        self._open[step.name] = _OpenPartition(index=index, flows=flows, by=by)
        self._journal.effect(index, cutter.cut(step.name, flows))

    def limit(self, step: Bandwidth, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Bound what the nodes send, and measure it."""
        self._refuse_taken(step.name)
        nodes = resolve(step.target, scene, draw)
        self._played.note(step, target=NamedNodes(nodes=nodes), at_s=now_s)
        taken = {node for bound in self._bounds.values() for node in bound.nodes}
        if both := sorted(taken.intersection(nodes)):
            raise HarnessError(
                f"bandwidth {step.name}: {', '.join(both)} already has a bandwidth limit"
            )
        cluster = self._cluster
        assert isinstance(cluster, DisturbsPackets), "refused before the start"
        targets = [str(node) for node in nodes]
        index = self._journal.begin("bandwidth", targets, kind=kind_of(step))
        self._bounds[step.name] = _OpenBound(index=index, nodes=nodes)
        rates = [
            f"{node} sends {cluster.limit_bandwidth(node, bits_per_s=step.bits_per_s) / 1e6:.3g}"
            for node in nodes
        ]
        self._journal.effect(index, f"{' Mbit/s, '.join(rates)} Mbit/s, measured")

    def heal(self, step: HealPartition, *, now_s: float) -> None:
        """End the partition or the bound of this name, and see that it is over."""
        if step.name not in self._bounds and step.name not in self._open:
            raise NotNowError(f"cannot heal partition {step.name}: it is not active")
        self._played.note(step, at_s=now_s)
        if step.name in self._bounds:
            self._free(step.name)
        else:
            self._mend(step.name)

    def heal_all(self, *, now_s: float) -> None:
        """End every one."""
        for name in [*self._open, *self._bounds]:
            self.heal(HealPartition(name=name), now_s=now_s)

    def _free(self, name: str) -> None:
        cluster = self._cluster
        assert isinstance(cluster, DisturbsPackets), "it was bounded"
        bound = self._bounds.pop(name)
        for node in bound.nodes:
            cluster.free_bandwidth(node)
        self._journal.end(bound.index, "the bound is gone from their interfaces")

    def _mend(self, name: str) -> None:
        healed = self._open.pop(name)
        alike = [one.flows for one in self._open.values() if one.by is healed.by]
        evidence = self._cutters[healed.by].mend(
            name,
            healed.flows.difference(*alike),
            others=set(chain.from_iterable(one.flows for one in self._open.values())),
        )
        self._journal.end(healed.index, evidence)

    def _cutter(self, step: Partition) -> tuple[Means, Cutter]:
        means = (Means.PROXY, Means.PACKETS) if step.by is None else (step.by,)
        for one in means:
            if one in self._cutters:
                return one, self._cutters[one]
        raise HarnessError("this run has no proxy between its nodes; run it without --no-wire")

    def _refuse_taken(self, name: str) -> None:
        if name in self._open or name in self._bounds:
            raise NotNowError(f"a partition named {name} is active already")


def _lost(flows: frozenset[Flow], scene: Scene) -> Iterator[str]:
    """Yield the nodes that a cut takes from the others, else its ends; found once it is asked."""
    lost = cut_off(flows, scene.nodes, scene.roles) or {node for flow in flows for node in flow}
    yield from sorted(lost - {CLIENTS})


def _frames(count: int) -> str:
    return f"{count} held frame{'' if count == 1 else 's'}"
