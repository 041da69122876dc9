"""A verb of a play: all there is about one word, in one value.

The value says how the word is parsed and written, what must hold before it, what it takes of a
cluster, how it is performed, how a mix draws it, and how a page shows it. Each other file of this
folder has one verb, or one and its counterpart, in its VERBS; plays, mixes, interpreters and pages
are loops over `registry`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.nemesis.clients import ControlsClients
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.wire.rules import Action, Match

if TYPE_CHECKING:
    from fencepost.nemesis.verbs.episode import (
        Episode,  # which is made of schedules, and these of verbs
    )

OnClient = Callable[[ControlsClients, str], str]
"""(clients, the name of one) → evidence."""

S = TypeVar("S", bound=Step)
N = TypeVar("N", bound=OnNodes)


class Capabilities(Protocol):
    """The abilities of a cluster and its host. Each answer is a reason why not, or None."""

    def lacks(self, *abilities: type) -> str | None:
        """Name the first of these abilities that the cluster has not."""

    @property
    def why_no_wire(self) -> str | None:
        """Return why nothing can be done to what links carry, or None."""

    @property
    def why_no_packets(self) -> str | None:
        """Return why nothing can be done to packets, or None."""

    @property
    def why_no_cut(self) -> str | None:
        """Return why no flow between nodes can be cut by any means, or None."""

    @property
    def why_no_clients(self) -> str | None:
        """Return why nothing can be done to client processes, or None."""

    @property
    def why_not_here(self) -> str | None:
        """Return why nothing can be done by the files and processes of this machine, or None."""

    def why_no_rule(self, action: Action, match: Match) -> str | None:
        """Return why the wire cannot have such a rule, or None."""


class Director(Protocol):
    """A performer of steps.

    Each returns whether what it waits for came in time, and raises HarnessError if it failed.
    """

    def act(self, step: OnNodes) -> bool:
        """Do the verb's deed to the nodes that the target resolves to."""

    def on_clients(self, step: Any, do: OnClient, then: OnClient | None) -> bool:
        """Do it to the clients that the step resolves to; `then` waits for its end."""

    def on_the_wire(self, step: Step) -> bool:
        """Lay or lift a rule, cut or heal a partition, bound a bandwidth."""

    def administer(
        self,
        step: Any,
        do: Callable[[Cluster, Any], None],
        one_by_one: Callable[[Any], Sequence[Any]],
    ) -> bool:
        """Have the cluster do what an operator asks for; `one_by_one`: as several such steps."""

    def start_clients(self, step: Any) -> bool:
        """Start the clients of every workload."""

    def wait(self, step: Any) -> bool:
        """Let time pass."""

    def await_condition(self, step: Any) -> bool:
        """Go on when a condition holds."""

    def heal_all(self) -> bool:
        """Undo whatever is broken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Healing:
    """The end of a fault of nodes, by the verb that heals it."""

    seen: str
    """The evidence when the fault is over."""
    of_running_nodes: bool = True
    """Every node has to run afterwards; if False, it is done to nodes whether they run or not."""
    of_the_living: bool = False
    """No node dies of what it ends, which outlives every process."""
    again_if_it_dies: bool = False
    """It is done again to a node that dies of the fault afterwards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAction(Generic[N]):
    """The effect of a verb on nodes."""

    do: Callable[[Cluster, Sequence[NodeName], N], str]
    """(cluster, nodes, step) → evidence that it took effect; HarnessError if none was seen."""
    abilities: tuple[type, ...]
    """Ports that the cluster must offer."""
    further: Callable[[N], tuple[type, ...]] = lambda _step: ()
    """Further ports that its modifiers take."""
    on_this_machine: bool = False
    """It is done to files and processes of this machine, wherever the nodes may be."""
    prerequisite: Prerequisite | None = None
    tried_in: tuple[NodeState, ...] = ()
    """The states of a node in which a trial does it; a node in another one is left as it is. None:
    no trial does it."""
    loses_records: bool = False
    """After it, records that only this node has may be gone."""
    takes_down: bool = False
    needs_down: bool = False
    draws: Callable[[N, Random], N] = lambda step, _draw: step
    """Draws what the step leaves open, before it is performed."""
    parts: Callable[[N], tuple[OnNodes, ...]] | None = None
    """The equivalent steps of a step that is performed on one node after the other, each of which
    is waited for.
    """

    mends_itself: bool = False
    """It ends with its own healing; all that is left is to see the node back."""
    heals: Healing | None = None
    """The healing by a verb that ends the faults which name it in `healed_by`; None: it heals
    nothing.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Verb(Generic[S]):
    """One word of a play."""

    word: str
    """The word; also the name of the fault in journals, checks and pages, if it is one."""
    example: tuple[str, ...]
    """Steps of a play, the last one with this word, as a document writes them: on `broker-1` of a
    cluster with topic `t`. The manual shows it, and the suite performs it everywhere."""
    step: type[S]
    fits: Callable[[S], bool] = lambda _step: True
    """Whether a step of a class that several verbs share belongs to this verb."""
    parse: Callable[[StepSource], Step]
    """Raises SpecError with the path below the step. The caller adds `at`."""
    data: Callable[[S], dict[str, object]]
    """The word with its operand, and its modifiers; `parse` reads it back."""
    perform: Callable[[S, Director], bool]
    modifiers: tuple[str, ...] = ()
    follow: Callable[[S, PredictedState], None] = lambda _step, _predicted: None
    """Applies its certain effects to the predicted state; SpecError if it contradicts that."""
    why_not: Callable[[S, Capabilities], str | None] = lambda _step, _there: None
    """Returns the reason why it cannot be done there, or None."""
    why_not_tried: Callable[[S], str | None] = lambda _step: None
    """Returns the reason why no trial does it, though its cluster could; or None."""
    fault: bool = False
    """It breaks something, and has a row of its own."""
    healed_by: str = ""
    """The verb that ends it; empty: it breaks nothing, or ends at once."""
    kind: Callable[[S], str] | None = None
    """The kind of fault that a step is; None: its word."""
    concerns_clients: Callable[[S], bool] = lambda _step: False
    """Tells whether it is done to the links of clients, which then go through the proxy, too."""
    action: "NodeAction[Any] | None" = None
    """The effect of a verb that is done to nodes."""
    episodes: "tuple[Episode, ...]" = ()
    """The kinds of fault that a mix makes of it."""
    state: str = ""
    """The state of a node during the fault, as a picture says it."""
    tones: tuple[str, str] | None = None
    """The colours of the fault in light and in dark surroundings, as `#rrggbb`; None: any."""
