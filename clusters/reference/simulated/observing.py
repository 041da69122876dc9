"""The harness's observer in a simulated world: asks every node what it shows, all the time.

As for a real cluster, every broker that runs is asked for its metadata itself, in rounds; at the
end of a round a `Sight` makes the view of the answers. Controllers are asked who leads the quorum,
if there are any. What was answered goes to a `Notebook`, if there is one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.node_port.effects import SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.codec.identifiers import text_of
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest, MetadataResponse
from fencepost.clusters.reference.nodes.messages.control import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
)
from fencepost.clusters.reference.simulated.kit import Sight
from fencepost.clusters.simulation.world import WAKE

_ROUND_NS: Final = 100_000_000
_GRACE_NS: Final = 500_000_000
"""The wait for slow brokers (starting, stuck) once one broker has answered."""
_ROUND_NS_MAX: Final = 2_000_000_000
_QUORUM_EVERY: Final = 5
"""The quorum is asked in every fifth round."""
_LOOK_NS: Final = 50_000_000


class Notebook(Protocol):
    """The notebook in which answers are written down. Times are the world's."""

    def shown(self, broker_id: int, call_ns: int, now_ns: int, response: MetadataResponse) -> None:
        """A broker showed its metadata."""

    def described(self, asked_ns: int, answers: Mapping[int, DescribeQuorumResponse]) -> None:
        """Controllers described their quorum."""


Running = Callable[[], tuple[int, ...]]
"""The numbers of the hosts of a role whose processes run."""


class WorldObserver:
    """A node of the world that only asks."""

    def __init__(self, sight: Sight, *, controllers: Running, brokers: Running) -> None:
        self.notebook: Notebook | None = None
        self._sight = sight
        self.view: ClusterView | None = None
        """The view of the last round; None: there is none."""
        self.answers: Mapping[int, MetadataResponse] = {}
        """The answers of the last round, by broker."""
        self.leader_id = -1
        """The latest controller that calls itself the leader of the quorum."""
        self.begun_count = 0
        self.ended_count = 0
        """Rounds."""
        self._controllers = controllers
        self._brokers = brokers
        self._correlation = 0
        self._asked: dict[int, tuple[int, int]] = {}
        """The broker asked and the time, by correlation."""
        self._answers: dict[int, MetadataResponse] = {}
        self._begin_ns = 0
        self._first_ns: int | None = None
        self._quorum_asked: dict[int, int] = {}
        self._quorum: dict[int, DescribeQuorumResponse] = {}
        self._quorum_ns = 0

    def notices(self, keys: AbstractSet[str]) -> bool:
        """Return whether every unfenced broker showed a leader of each key in the last round."""
        unfenced = frozenset() if self.view is None else self.view.brokers
        shown = [
            {
                f"{topic[0]}-{one.partition}"
                for topic in self.answers[broker].topics
                for one in topic[3]
                if one.leader_id >= 0
            }
            for broker in unfenced
            if broker in self.answers
        ]
        return 0 < len(shown) == len(unfenced) and all(keys <= seen for seen in shown)

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Begin a round when one is due, end it when it is complete or too late."""
        if kind in (START, TICK):
            self._tick(now, effects)
        elif kind == MetadataResponse.kind:
            self._answered(now, source, message)
        elif kind == DescribeQuorumResponse.kind:
            if self._quorum_asked.pop(message.correlation, None) is not None:
                self._quorum[source] = message
        elif kind == UNREACHABLE:
            self._asked.pop(message.correlation, None)
            self._quorum_asked.pop(message.correlation, None)

    def _tick(self, now: int, effects: Effects) -> None:
        if self.begun_count > self.ended_count and self._is_over(now):
            self._end(now)
        if self.begun_count == self.ended_count and now >= self._begin_ns + _ROUND_NS:
            self._begin(now, effects)
        effects.append((WAKE, now + _LOOK_NS))

    def _is_over(self, now: int) -> bool:
        waited = now - self._begin_ns
        graced = self._first_ns is not None and now - self._first_ns >= _GRACE_NS
        return not self._asked or graced or waited >= _ROUND_NS_MAX

    def _begin(self, now: int, effects: Effects) -> None:
        self._begin_ns, self._first_ns = now, None
        self._answers = {}
        self._asked.clear()
        if self.begun_count % _QUORUM_EVERY == 0:
            self._end_quorum()
            self._quorum_ns = now
            for controller in self._controllers():
                self._correlation += 1
                self._quorum_asked[self._correlation] = controller
                effects.append((SEND, controller, DescribeQuorumRequest(self._correlation)))
        for broker in self._brokers():
            self._correlation += 1
            self._asked[self._correlation] = (broker, now)
            effects.append((SEND, broker, MetadataRequest(self._correlation, None)))
        self.begun_count += 1

    def _answered(self, now: int, source: int, message: MetadataResponse) -> None:
        asked = self._asked.pop(message.correlation, None)
        if asked is None:
            return  # of a round that did not wait for it
        self._first_ns = now if self._first_ns is None else self._first_ns
        self._answers[source] = message
        if self.notebook is not None:
            self.notebook.shown(source, asked[1], now, message)
        if not self._asked:
            self._end(now)

    def _end(self, now: int) -> None:
        self.ended_count = self.begun_count
        self._asked.clear()
        self.answers = self._answers
        self.view = self._sight.view(now, self._answers)

    def _end_quorum(self) -> None:
        leaders = [
            (answer.epoch, controller)
            for controller, answer in self._quorum.items()
            if not answer.error and answer.leader_id == controller
        ]
        self.leader_id = max(leaders, default=(-1, -1))[1]
        if self.notebook is not None and self._quorum:
            self.notebook.described(self._quorum_ns, self._quorum)
        self._quorum, self._quorum_asked = {}, {}


class AnsweredSight:
    """`Sight` of a cluster that shows itself by the answers of its nodes alone."""

    def __init__(self) -> None:
        self.shown: ClusterView | None = None
        self._rests_on: dict[int, tuple[Any, Any]] = {}
        """The parts of the answers that the view was made of, by broker."""

    def view(self, now: int, answers: Mapping[int, MetadataResponse]) -> ClusterView | None:
        """Return the best answer; brokers share its parts while these are the same."""
        parts = {broker: (one.brokers, one.topics) for broker, one in answers.items()}
        before, self._rests_on = self._rests_on, parts
        if self.shown is not None and _are_shared(parts, before):
            self.shown = replace(self.shown, time_ns=now)
        else:
            self.shown = view_of(answers, time_ns=now) if parts else None
        return self.shown

    @property
    def parts(self) -> tuple[object, ...]:
        """Return the parts of the view, the same ones as before where nothing has changed."""
        view = self.shown
        return () if view is None else (view.brokers, view.serving, view.partitions)

    def controller(self, claims: int) -> int:
        """Return the controller that called itself the leader of the quorum last."""
        return claims

    def is_up(self, view: ClusterView | None, brokers: Collection[int]) -> bool:
        """Return whether all brokers are unfenced, which a controller has to say."""
        return view is not None and view.brokers == view.serving == brokers

    def latest_registration(self, broker: NodeName) -> int | None:  # noqa: ARG002  # the port's
        """Return nothing: no answer has it."""
        return None

    def recorded(self, raw: Path) -> AbstractContextManager[object]:  # noqa: ARG002  # the port's
        """Record nothing: answers are all there is."""
        return nullcontext()


def view_of(answers: Mapping[int, MetadataResponse], *, time_ns: int) -> ClusterView:
    """The view in the most current of these answers, by the brokers who gave them.

    A broker that is fenced, and knows it, does not list itself. One that is cut off lists itself
    for ever: leader epochs tell it from the others, else the view that most share is taken.
    """
    listed = {broker: _listed(answer) for broker, answer in answers.items()}
    shared = Counter(listed.values())

    def currency(broker: int) -> tuple[bool, int, int, int]:
        epochs = sum(one.leader_epoch for topic in answers[broker].topics for one in topic[3])
        return (broker in listed[broker], epochs, shared[listed[broker]], -broker)

    best = max(answers, key=currency)
    return ClusterView(
        time_ns=time_ns,
        brokers=listed[best],
        serving=frozenset(broker for broker in answers if broker in listed[broker]),
        partitions={
            f"{name}-{one.partition}": PartitionView(
                leader=one.leader_id if one.leader_id >= 0 else None,
                isr=one.isr,
                replicas=one.replicas,
            )
            for name, _, _, partitions in answers[best].topics
            for one in partitions
        },
        topic_ids={text_of(topic_id): name for name, topic_id, _, _ in answers[best].topics},
    )


def _are_shared(
    parts: Mapping[int, tuple[Any, Any]], before: Mapping[int, tuple[Any, Any]]
) -> bool:
    """Return whether these are the very same parts as before; equal copies do not count."""
    return parts.keys() == before.keys() and all(
        brokers is before[broker][0] and topics is before[broker][1]
        for broker, (brokers, topics) in parts.items()
    )


def _listed(answer: MetadataResponse) -> frozenset[int]:
    return frozenset(broker for broker, _, _, _ in answer.brokers)
