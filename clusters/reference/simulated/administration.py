"""The acts of an operator on a simulated cluster, each with its end seen.

The active controller is asked itself, unless another node is named; what is refused in passing
(no controller is active, a replica is not in the ISR yet) is asked for again until the bound.
"""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterReassignmentsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    NewTopic,
)
from fencepost.clusters.reference.simulated.error_names import error_name
from fencepost.clusters.reference.simulated.simulated_operator import SimulatedOperator
from fencepost.clusters.simulation.world import World
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError

_ATTEMPT_NS_MAX: Final = 5 * S
_RETRY_NS: Final = 20 * MS
_HOPELESS: Final = frozenset(
    {
        Error.INVALID_CONFIG,
        Error.INVALID_PARTITIONS,
        Error.INVALID_REPLICA_ASSIGNMENT,
        Error.INVALID_REQUEST,
        Error.INVALID_TOPIC_EXCEPTION,
        Error.UNSUPPORTED_VERSION,
    }
)
"""The errors that asking again cannot change."""

Answered = tuple[int, str]
"""(error, words) of the one thing that was asked for."""


class Administration:
    """Asks as `Administers` says. `leader`: the active controller's id, or -1."""

    def __init__(
        self,
        world: World,
        operator: SimulatedOperator,
        *,
        leader: Callable[[], int],
        view: Callable[[], ClusterView],
    ) -> None:
        self._world = world
        self._operator = operator
        self._leader = leader
        self._view = view

    def create_topic(self, topic: TopicSpec, *, via: int | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted.

        Raises HarnessError if it is refused for good, or not granted in time.
        """
        wanted = (new_topic(topic),)

        def request(correlation: int) -> CreateTopicsRequest:
            return CreateTopicsRequest(correlation, wanted, _ATTEMPT_NS_MAX)

        self._insist(
            request,
            lambda answer: (answer.topics[0][2], answer.topics[0][3]),
            what=f"create topic {topic.name}",
            via=via,
            end_ns=self._end_ns(within_s),
            done=Error.TOPIC_ALREADY_EXISTS,
        )
        return f"created topic {topic.name}"

    def delete_topic(self, name: str, *, via: int | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) to delete it; returns once it was granted."""
        self._insist(
            lambda correlation: DeleteTopicsRequest(correlation, ((name, -1),), _ATTEMPT_NS_MAX),
            lambda answer: (answer.topics[0][2], ""),
            what=f"delete topic {name}",
            via=via,
            end_ns=self._end_ns(within_s),
            done=Error.UNKNOWN_TOPIC_OR_PARTITION,
        )
        return f"deleted topic {name}"

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        """Give the key these replicas; returns once that is over, or granted if not `awaited`."""
        end_ns = self._end_ns(within_s)
        before = self._look(key, end_ns)
        self._move(key, replicas, end_ns=end_ns)
        if not awaited:
            return f"{key} was {_words(before)}; its move to {list(replicas)} was granted"
        self._await_move(key, replicas, end_ns=end_ns)
        return f"{key} was {_words(before)}; it is {_words(self._look(key, end_ns))}"

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""
        end_ns = self._end_ns(within_s)
        before = self._look(key, end_ns)
        if leader not in before.replicas:
            raise HarnessError(f"broker {leader} cannot lead {key}: {_words(before)}")
        wanted = (leader, *(one for one in before.replicas if one != leader))
        if before.replicas != wanted:
            self._move(key, wanted, end_ns=end_ns)
            self._await_move(key, wanted, end_ns=end_ns)
        topic, partition = _parts(key)
        while (seen := self._look(key, end_ns)).leader != leader:
            self._refuse_late(end_ns, f"{key} was not led by broker {leader}: {_words(seen)}")
            self._asked(
                lambda correlation: ElectLeadersRequest(
                    correlation, unclean=False, partitions=((topic, partition),)
                ),
                self._leader(),
            )
        return f"{key} was {_words(before)}; it is {_words(seen)}"

    def _move(self, key: str, replicas: tuple[int, ...], *, end_ns: int) -> None:
        topic, partition = _parts(key)
        self._insist(
            lambda correlation: AlterReassignmentsRequest(
                correlation, ((topic, partition, replicas),)
            ),
            lambda answer: (
                (answer.error, "") if answer.error else (answer.moves[0][2], answer.moves[0][3])
            ),
            what=f"reassign {key}",
            via=None,
            end_ns=end_ns,
        )

    def _await_move(self, key: str, replicas: tuple[int, ...], *, end_ns: int) -> None:
        topic, partition = _parts(key)
        while self._is_moving(topic, partition) or self._look(key, end_ns).replicas != replicas:
            self._refuse_late(end_ns, f"{key} was still being reassigned to {list(replicas)}")
            self._wait()

    def _is_moving(self, topic: str, partition: int) -> bool:
        answer = self._asked(
            lambda correlation: ListReassignmentsRequest(correlation, ((topic, partition),)),
            self._leader(),
        )
        return answer is None or answer.error or bool(answer.partitions)

    def _insist(
        self,
        request: Callable[[int], Any],
        answered: Callable[[Any], Answered],
        *,
        what: str,
        via: int | None,
        end_ns: int,
        done: Error | None = None,
    ) -> None:
        """Ask until it is granted, or was by an attempt before (`done`)."""
        problem, unsure = "no controller answered", False
        while self._world.now_ns < end_ns:
            answer = self._asked(request, self._leader() if via is None else via)
            if answer is None:
                unsure = True
            else:
                error, words = answered(answer)
                if not error or (unsure and error == done):
                    return
                problem = f"{error_name(error)} {words}".rstrip()
                if error in _HOPELESS or error == done:
                    raise HarnessError(f"cannot {what}: {problem}")
                unsure |= error == Error.REQUEST_TIMED_OUT
            self._wait()
        raise HarnessError(f"could not {what} in time: {problem}")

    def _asked(self, request: Callable[[int], Any], target: int) -> Any:
        if target < 0:
            return None
        return self._operator.ask(target, request, timeout_ns=_ATTEMPT_NS_MAX)

    def _look(self, key: str, end_ns: int) -> PartitionView:
        while (seen := self._view().partitions.get(key)) is None:
            self._refuse_late(end_ns, f"no broker knows {key}")
            self._wait()
        return seen

    def _refuse_late(self, end_ns: int, otherwise: str) -> None:
        if self._world.now_ns >= end_ns:
            raise HarnessError(f"{otherwise} in time")

    def _wait(self) -> None:
        self._world.run(self._world.now_ns + _RETRY_NS)

    def _end_ns(self, within_s: float) -> int:
        return self._world.now_ns + int(within_s * S)


def new_topic(topic: TopicSpec) -> NewTopic:
    """A topic as a controller is asked for it."""
    return NewTopic(
        topic.name,
        topic.partitions if topic.assignment is None else len(topic.assignment),
        topic.replication_factor,
        topic.assignment,
        tuple(topic.settings.items()),
    )


def _parts(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)


def _words(seen: PartitionView) -> str:
    return f"leader {seen.leader}, replicas {list(seen.replicas)}, isr {list(seen.isr)}"
