"""Performs acts on a cluster and keeps the books: which faults are open, which nodes we took down.

Each act that breaks something opens a row of `faults`; the row gets its effect once that was seen,
and its end once the heal was seen to work: the process runs again, a broker is unfenced. Every act
is appended to the performed play before it is tried, with the time and the nodes it came to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from clusters.abilities import Pauses, Skews, Snapshots, Squeezes, Starts, Throttles, TroublesDisks
from clusters.evolution import ChangesReleases, members_of
from clusters.port import Cluster, NodeName, NodeState
from harness.played import PerformedPlay
from history.failure import HarnessError
from history.journal import FaultJournal
from nemesis.conditions import Observation
from nemesis.kinds import kind_of
from nemesis.steps import Act, Word
from nemesis.targets import NamedNodes
from nemesis.verbs.catalogue import FAULTS

__all__ = ["OpenFault", "Performer"]

_HOLDING_ON = frozenset({Word.UNSKEW, Word.UNTHROTTLE, Word.UNSQUEEZE})
"""What ends a fault that no process dies of, and that outlives each."""
_MENDING = _HOLDING_ON | {Word.MEND_DISK}
"""What is done to a node whether it runs or not."""
_HEALED = {
    Word.START: "runs again, brokers are unfenced",
    Word.RESUME: "goes on, brokers are unfenced",
    Word.MEND_DISK: "its disk is whole again, it runs, brokers are unfenced",
    **dict.fromkeys(_HOLDING_ON, "runs, brokers are unfenced"),
}
"""What was seen when a fault ended, by the word that healed it."""


@dataclass(slots=True, kw_only=True)
class OpenFault:
    """A fault whose heal has not been seen yet."""

    index: int
    name: str
    healed_by: str
    broken: set[NodeName]
    """Nodes whose heal was not yet performed."""
    healing: set[NodeName]
    """Nodes whose heal was performed and not yet seen to work."""
    late: set[NodeName] = field(default_factory=set)
    """Nodes that died of their disk after it was mended, and were started then."""
    mended: list[str] = field(default_factory=list)
    """What performing the heals showed, where it did."""


class Performer:
    """The only place that breaks and mends nodes during a run."""

    def __init__(self, cluster: Cluster, *, journal: FaultJournal, played: PerformedPlay) -> None:
        self._cluster = cluster
        self._journal = journal
        self._played = played
        self.open_faults: list[OpenFault] = []

    def perform(self, act: Act, nodes: Sequence[NodeName], *, now_s: float) -> None:
        """Do the act to the nodes and see its effect. HarnessError if that was not to be seen."""
        self._played.note(replace(act, target=NamedNodes(nodes=tuple(nodes)), at_s=now_s))
        if act.word in FAULTS:
            self._break(act, nodes)
        elif act.word is Word.SNAPSHOT:
            assert isinstance(self._cluster, Snapshots)
            for node in nodes:
                self._cluster.snapshot_node(node, act.label)
        else:
            for node in nodes:
                self._mend(act, node)

    @property
    def open_labels(self) -> tuple[str, ...]:
        """What is broken now, e.g. `kill broker-2`."""
        return tuple(
            f"{fault.name} {', '.join(sorted(fault.broken | fault.healing))}"
            for fault in self.open_faults
        )

    def mend_all(self) -> list[Act]:
        """The acts that would end what holds for nodes whether they run or not.

        Nodes that died of their disk are started when it is mended.
        """
        broken = {
            (Word(fault.healed_by), node)
            for fault in self.open_faults
            if fault.healed_by in _MENDING
            for node in fault.broken
        }
        return [Act(word=word, target=NamedNodes(nodes=(node,))) for word, node in sorted(broken)]

    def heal_all(self) -> list[Act]:
        """The acts that would undo the rest: resume the paused, start those that are down."""
        states = {node: self._cluster.state(node) for node in members_of(self._cluster)}
        words = {NodeState.PAUSED: Word.RESUME, NodeState.DOWN: Word.START}
        return [
            Act(word=words[state], target=NamedNodes(nodes=(node,)))
            for node, state in states.items()
            if state in words
        ]

    def settle(self, now: Observation) -> None:
        """End the faults whose heal this observation shows."""
        for fault in list(self.open_faults):
            if fault.healed_by == Word.MEND_DISK:
                self._start_late_dead(fault)
            fault.healing = {node for node in fault.healing if not _is_back(node, now)}
            if not fault.healing and not fault.broken:
                evidence = [*fault.mended, _HEALED[Word(fault.healed_by)]]
                self._journal.end(fault.index, "; ".join(evidence))
                self.open_faults.remove(fault)

    def died_by_themselves(self) -> tuple[NodeName, ...]:
        """Nodes without a process that no open fault of ours explains."""
        ours = {
            node
            for fault in self.open_faults
            if fault.healed_by not in _HOLDING_ON
            for node in fault.broken
        }
        return tuple(
            node
            for node in members_of(self._cluster)
            if node not in ours and self._cluster.state(node) is NodeState.DOWN
        )

    def _break(self, act: Act, nodes: Sequence[NodeName]) -> None:
        self._overtake(act.word, nodes)
        fault = FAULTS[act.word]
        targets = [str(node) for node in nodes]
        index = self._journal.begin(fault.name, targets, kind=kind_of(act))
        opened = OpenFault(
            index=index,
            name=fault.name,
            healed_by=fault.healed_by,
            broken=set(nodes),
            healing=set(),
        )
        self.open_faults.append(opened)
        self._journal.effect(index, fault.inject(self._cluster, nodes, act))
        if fault.mends_itself:
            self._begin_healing(fault.healed_by, nodes)

    def _start_late_dead(self, fault: OpenFault) -> None:
        """A node may be about to die of its disk when that is mended. Once it is started again."""
        assert isinstance(self._cluster, TroublesDisks)
        for node in sorted(fault.healing - fault.late):
            if self._cluster.state(node) is NodeState.DOWN:
                fault.late.add(node)
                fault.mended.append(f"{node} ended after it was mended")
                self._cluster.mend_disk(node)

    def _overtake(self, word: Word, nodes: Sequence[NodeName]) -> None:
        """End the faults that were mended on these nodes, which nobody will see whole again."""
        for fault in list(self.open_faults):
            overtaken = fault.healing.intersection(nodes)
            fault.healing -= overtaken
            if overtaken and not fault.healing and not fault.broken:
                evidence = f"mended; {word} came before it was seen to be back"
                self._journal.end(fault.index, evidence)
                self.open_faults.remove(fault)

    def _mend(self, act: Act, node: NodeName) -> None:
        shown = self._mended(act, node)
        if act.word not in _MENDING and self._cluster.state(node) is not NodeState.RUNNING:
            raise HarnessError(f"{node}: does not run after {act.word}")
        for fault in self.open_faults:
            if fault.healed_by == act.word and node in fault.broken:
                fault.mended += shown
        self._begin_healing(act.word, (node,))

    def _mended(self, act: Act, node: NodeName) -> list[str]:
        """Do it; what it showed by itself."""
        cluster = self._cluster
        match act.word:
            case Word.START:
                assert isinstance(cluster, Starts)
                if act.release is not None:
                    assert isinstance(cluster, ChangesReleases)
                    cluster.change_release(node, act.release)
                cluster.start_node(node)
            case Word.RESUME:
                assert isinstance(cluster, Pauses)
                cluster.resume_node(node)
            case Word.MEND_DISK:
                assert isinstance(cluster, TroublesDisks)
                found = cluster.state(node)
                cluster.mend_disk(node)
                return [f"{node} had ended" if found is NodeState.DOWN else f"{node} went on"]
            case Word.UNSKEW:
                assert isinstance(cluster, Skews)
                return [cluster.unskew_node(node)]
            case Word.UNTHROTTLE:
                assert isinstance(cluster, Throttles)
                return [cluster.unthrottle_node(node)]
            case Word.UNSQUEEZE:
                assert isinstance(cluster, Squeezes)
                return [cluster.unsqueeze_node(node)]
            case _:
                raise AssertionError(act.word)
        return []

    def forget(self, nodes: Sequence[NodeName]) -> None:
        """End the faults of nodes that are members no more: nobody will see them whole."""
        for fault in list(self.open_faults):
            fault.broken -= set(nodes)
            fault.healing -= set(nodes)
            if not fault.healing and not fault.broken:
                self._journal.end(fault.index, "no member of the cluster any more")
                self.open_faults.remove(fault)

    def _begin_healing(self, word: str, nodes: Sequence[NodeName]) -> None:
        for fault in self.open_faults:
            if fault.healed_by == word:
                fault.healing |= fault.broken.intersection(nodes)
                fault.broken -= set(nodes)


def _is_back(node: NodeName, now: Observation) -> bool:
    if now.states[node] is not NodeState.RUNNING:
        return False
    if node not in now.broker_ids:
        return True
    return now.view is not None and now.broker_ids[node] in now.view.brokers & now.view.serving
