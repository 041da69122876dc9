"""The performance of acts on a cluster, with the books: open faults, nodes that we took down.

Each act that breaks something opens a row of `faults`; the row gets its effect once that was seen,
and its end once the heal was seen to work: the process runs again, a broker is unfenced. Every act
is appended to the performed play before it is tried, with the time and the nodes it came to.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencepost.clusters.evolution import members_of
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.harness.interpreter.books import FaultBook, Played
from fencepost.harness.interpreter.policy import Policy
from fencepost.history.failure import HarnessError
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.pause import Resume
from fencepost.nemesis.verbs.registry import VERBS, kind_of, verb_of
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.verb import Healing, NodeAction, Verb


@dataclass(slots=True, kw_only=True)
class OpenFault:
    """A fault whose heal has not been seen yet."""

    index: int
    name: str
    healed_by: "Verb[Any]"
    broken: set[NodeName]
    """The nodes whose heal was not yet performed."""
    healing: set[NodeName]
    """The nodes whose heal was performed and not yet seen to work."""
    late: set[NodeName] = field(default_factory=set)
    """The nodes that died of their disk after it was mended, and were started then."""
    mended: list[str] = field(default_factory=list)
    """The evidence that performing the heals returned, where it returned any."""


class Performer:
    """The only place that breaks and mends nodes during a run."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        journal: FaultBook,
        played: Played,
        policy: Policy = Policy(),  # noqa: B008  # it is frozen
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._played = played
        self._policy = policy
        self.open_faults: list[OpenFault] = []
        self._ending: set[NodeName] = set()
        """The nodes whose end a play has awaited, until they are started again."""

    def perform(self, step: OnNodes, nodes: Sequence[NodeName], *, now_s: float) -> None:
        """Do the step to the nodes and see its effect; raise HarnessError if it was not seen."""
        self._played.note(step, target=NamedNodes(nodes=tuple(nodes)), at_s=now_s)
        verb = verb_of(step)
        action = action_of(verb)
        if verb.fault:
            self._break(step, nodes)
        elif action.heals is not None:
            for node in nodes:
                self._mend(step, node)
        else:
            action.do(self._cluster, nodes, step)

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The labels of the open faults, e.g. `kill broker-2`."""
        return tuple(
            f"{fault.name} {', '.join(sorted(fault.broken | fault.healing))}"
            for fault in self.open_faults
        )

    def mend_all(self) -> list[OnNodes]:
        """Return the steps that would end the faults that hold for nodes whether they run or not.

        Nodes that died of their disk are started when it is mended.
        """
        broken = {
            (fault.healed_by.word, node)
            for fault in self.open_faults
            if not _healing(fault.healed_by).of_running_nodes
            for node in fault.broken
        }
        return [VERBS[word].step(target=NamedNodes(nodes=(node,))) for word, node in sorted(broken)]

    def heal_all(self) -> list[OnNodes]:
        """Return the steps that undo the rest: resume the paused, start those that are down."""
        states = {node: self._cluster.state(node) for node in members_of(self._cluster)}
        steps = {NodeState.PAUSED: Resume, NodeState.DOWN: Start}
        return [
            steps[state](target=NamedNodes(nodes=(node,)))
            for node, state in states.items()
            if state in steps
        ]

    def settle(self, now: Observation) -> None:
        """End the faults whose heal this observation shows."""
        for fault in list(self.open_faults):
            if _healing(fault.healed_by).again_if_it_dies:
                self._start_late_dead(fault)
            fault.healing = {node for node in fault.healing if not _is_back(node, now)}
            if not fault.healing and not fault.broken:
                evidence = [*fault.mended, _healing(fault.healed_by).seen]
                self._end(fault, "; ".join(evidence))

    def died_by_themselves(self) -> tuple[NodeName, ...]:
        """Return the nodes without a process whose end no open fault of ours explains."""
        ours = {
            node
            for fault in self.open_faults
            if not _healing(fault.healed_by).of_the_living
            for node in fault.broken
        }
        return tuple(
            node
            for node in members_of(self._cluster)
            if node not in ours | self._ending and self._cluster.state(node) is NodeState.DOWN
        )

    def await_ends(self, nodes: Collection[NodeName]) -> None:
        """Take note that a play goes on with the ends of these nodes, until they are started."""
        self._ending |= set(nodes)

    def _break(self, step: OnNodes, nodes: Sequence[NodeName]) -> None:
        action = action_of(verb_of(step))
        opened = self._opened(step, nodes)
        self._journal.effect(opened.index, action.do(self._cluster, nodes, step))
        if action.mends_itself:
            self._begin_healing(opened.healed_by, nodes)

    def found(self, step: OnNodes, nodes: Sequence[NodeName], evidence: str) -> None:
        """Note a fault that was done to the nodes elsewhere, and is healed like any other."""
        self._journal.effect(self._opened(step, nodes).index, evidence)

    def _opened(self, step: OnNodes, nodes: Sequence[NodeName]) -> OpenFault:
        verb = verb_of(step)
        self._overtake(verb.word, nodes)
        targets = [str(node) for node in nodes]
        index = self._journal.begin(verb.word, targets, kind=kind_of(step))
        opened = OpenFault(
            index=index,
            name=verb.word,
            healed_by=VERBS[verb.healed_by],
            broken=set(nodes),
            healing=set(),
        )
        self.open_faults.append(opened)
        return opened

    def _start_late_dead(self, fault: OpenFault) -> None:
        """Start the nodes again that died of their disk as it was mended, once each."""
        for node in sorted(fault.healing - fault.late):
            if self._cluster.state(node) is NodeState.DOWN:
                fault.late.add(node)
                fault.mended.append(f"{node} ended after it was mended")
                again = fault.healed_by.step(target=NamedNodes(nodes=(node,)))
                action_of(fault.healed_by).do(self._cluster, (node,), again)

    def _overtake(self, word: str, nodes: Sequence[NodeName]) -> None:
        """End the mended faults of these nodes, whose heals can no longer be seen to work."""
        for fault in list(self.open_faults):
            overtaken = fault.healing.intersection(nodes)
            fault.healing -= overtaken
            if overtaken and not fault.healing and not fault.broken:
                self._end(fault, f"mended; {word} came before it was seen to be back")

    def _mend(self, step: OnNodes, node: NodeName) -> None:
        verb = verb_of(step)
        action = action_of(verb)
        self._ending.discard(node)
        shown = action.do(self._cluster, (node,), step)
        if (
            self._policy.demands_evidence
            and _healing(verb).of_running_nodes
            and self._cluster.state(node) is not NodeState.RUNNING
        ):
            raise HarnessError(f"{node} does not run after {verb.word}")
        for fault in self.open_faults:
            if shown and fault.healed_by is verb and node in fault.broken:
                fault.mended.append(shown)
        self._begin_healing(verb, (node,))

    def forget(self, nodes: Sequence[NodeName], why: str) -> None:
        """End the faults of nodes that will not be seen to be whole again."""
        for fault in list(self.open_faults):
            fault.broken -= set(nodes)
            fault.healing -= set(nodes)
            if not fault.healing and not fault.broken:
                self._end(fault, why)

    def give_up(self, why: str) -> None:
        """End the faults that were begun and whose heal finds nothing to mend: each node runs."""
        for fault in list(self.open_faults):
            fault.broken.clear()
            if not fault.healing:
                self._end(fault, why)

    def _begin_healing(self, verb: "Verb[Any]", nodes: Sequence[NodeName]) -> None:
        for fault in list(self.open_faults):
            if fault.healed_by is verb:
                if self._policy.demands_evidence:
                    fault.healing |= fault.broken.intersection(nodes)
                fault.broken -= set(nodes)
                if not fault.healing and not fault.broken:
                    self._end(fault, f"{', '.join(nodes)}: {verb.word}")

    def _end(self, fault: OpenFault, evidence: str) -> None:
        self._journal.end(fault.index, evidence)
        self.open_faults.remove(fault)


def action_of(verb: "Verb[Any]") -> "NodeAction[Any]":
    """The effect on nodes of a verb that is done to them."""
    assert verb.action is not None, f"{verb.word} is done to nodes"
    return verb.action


def _healing(verb: "Verb[Any]") -> Healing:
    healing = action_of(verb).heals
    assert healing is not None, f"{verb.word} heals"
    return healing


def _is_back(node: NodeName, now: Observation) -> bool:
    if now.states[node] is not NodeState.RUNNING:
        return False
    if node not in now.broker_ids:
        return True
    return now.view is not None and now.broker_ids[node] in now.view.taking_part
