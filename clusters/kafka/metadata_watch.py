"""The watch on what brokers show of a run's topics, who leads the quorum, and each node's progress.

The harness's own reads: process -1 in `describes`. A broker's answer is recorded when it differs
from its last one, and once a second; the quorum is asked once a second, each controller itself:
which of them call themselves its leader, and how far each node has the metadata log. Each broker
has a thread and a connection to itself, so that one that is paused delays no look at another.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from kio.schema.describe_quorum.v0.request import DescribeQuorumRequest, PartitionData, TopicData
from kio.schema.describe_quorum.v0.response import DescribeQuorumResponse
from kio.schema.describe_quorum.v0.response import PartitionData as PartitionDescription
from kio.schema.errors import ErrorCode
from kio.schema.types import TopicName
from kio.static.primitive import i32

from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.describing import DescribeRecorder, Item, ask_topics
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.kafka.settings_watch import SettingsWatch
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import ReadJournal, RowJournal

OBSERVER: Final = -1
"""The process number of the harness's own reads."""
_CLIENT_ID: Final = "fencepost-observer"
_LOOK_S: Final = 0.2
_RECORD_NS: Final = 1_000_000_000
_QUORUM_S: Final = 1.0
_TIMEOUT_S: Final = 2.0
_END_S_MAX: Final = 10.0

_METADATA_LOG: Final = TopicData(
    topic_name=TopicName("__cluster_metadata"),
    partitions=(PartitionData(partition_index=i32(0)),),
)
_QUORUM: Final = DescribeQuorumRequest(topics=(_METADATA_LOG,))

Nodes = Callable[[], Mapping[NodeName, Address]]


def _nowhere(node_id: int) -> NodeName:
    raise AssertionError(f"no controller spoke of node {node_id}")


class MetadataWatch:
    """A context manager: watches from entry to exit.

    Raises HarnessError at the exit if one of its threads ended early, e.g. since the record could
    not be written: it is not to be taken for a whole one. `controllers`: those that run, at the
    time of asking, None where there are none; `node_of`: a node by Kafka's id; `with_settings`: the
    settings that brokers show of the topics are recorded, too.
    """

    def __init__(
        self,
        raw: Path,
        *,
        clock: Clock,
        topics: Sequence[str],
        brokers: Mapping[NodeName, Address],
        controllers: Nodes | None = None,
        node_of: Callable[[int], NodeName] = _nowhere,
        api_versions: ApiVersions = NEWEST,
        with_settings: bool = False,
    ) -> None:
        self._clock = clock
        self._topics = tuple(topics)
        self._brokers = dict(brokers)
        self._controllers = controllers or dict
        self._node_of = node_of
        self._spoken = api_versions
        self._reads = ReadJournal(raw, clock, writer="observer")
        self._offsets = RowJournal(raw, "metadata_offsets")
        self._claims = RowJournal(raw, "quorum_claims")
        self._settings = RowJournal(raw, "topic_settings") if with_settings else None
        self._recorder = DescribeRecorder(self._reads, process=OBSERVER)
        self._stop = threading.Event()
        self._failures: list[Exception] = []
        self._threads = [] if controllers is None else [self._thread(self._watch_quorum)]
        if self._topics:
            self._threads += [self._thread(self._watch, broker) for broker in self._brokers]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=_END_S_MAX)
        self._reads.close()
        self._offsets.close()
        self._claims.close()
        if self._settings is not None:
            self._settings.close()
        if self._failures and kind is None:
            first = self._failures[0]
            why = first if isinstance(first, HarnessError) else repr(first)
            raise HarnessError(f"the watch of metadata ended early: {why}") from first

    def _thread(self, target: Callable[..., None], *args: object) -> threading.Thread:
        def run() -> None:
            try:
                target(*args)
            except Exception as error:  # noqa: BLE001  # the run's end says so
                self._failures.append(error)

        return threading.Thread(target=run, name="metadata-watch", daemon=True)

    def _watch(self, broker: NodeName) -> None:
        last: tuple[Item, ...] | None = None
        due_ns = 0
        settings = (
            None if self._settings is None else SettingsWatch(self._settings, self._clock, broker)
        )
        with NodeConnection(self._brokers[broker], client_id=_CLIENT_ID) as connection:
            while not self._stop.is_set():
                number, call_ns = self._reads.begin()
                items = self._shown(connection)
                if items is not None and (items != last or call_ns >= due_ns):
                    last, due_ns = items, call_ns + _RECORD_NS
                    self._recorder.add(broker, number, call_ns=call_ns, items=items)
                else:
                    self._reads.drop(number)
                if settings is not None:
                    settings.after(items, connection, timeout_s=_TIMEOUT_S)
                self._stop.wait(_LOOK_S)

    def _shown(self, connection: NodeConnection) -> tuple[Item, ...] | None:
        try:
            topics, api_versions = self._topics, self._spoken
            return ask_topics(connection, topics, timeout_s=_TIMEOUT_S, api_versions=api_versions)
        except NoAnswerError:
            return None  # it is down: others see to that

    def _watch_quorum(self) -> None:
        while not self._stop.is_set():
            asked_ns = self._clock.now_ns()
            answers = ask(
                self._controllers(), _QUORUM, DescribeQuorumResponse, timeout_s=_TIMEOUT_S
            )
            for controller, controller_epoch in quorum_claims(answers):
                claim = {
                    "time_ns": asked_ns,
                    "node": controller,
                    "controller_epoch": controller_epoch,
                }
                self._claims.add(claim)
            for node_id, metadata_offset in quorum_offsets(answers.values()):
                row = {
                    "time_ns": asked_ns,
                    "node": self._node_of(node_id),
                    "metadata_offset": metadata_offset,
                    "source": "quorum",
                }
                self._offsets.add(row)
            self._stop.wait(_QUORUM_S)


def quorum_offsets(answers: Iterable[DescribeQuorumResponse]) -> Iterator[tuple[int, int]]:
    """Yield (node id, last offset in its log) of every replica, as the latest leader says.

    A leader knows of another replica where it fetches from: one beyond what it has, or nothing yet.
    """
    described = [partition for answer in answers for partition in _described(answer)]
    if described:
        latest = max(described, key=lambda partition: partition.leader_epoch)
        for replica in (*latest.current_voters, *latest.observers):
            if replica.log_end_offset > 0:
                yield int(replica.replica_id), int(replica.log_end_offset) - 1


def quorum_claims(
    answers: Mapping[NodeName, DescribeQuorumResponse],
) -> Iterator[tuple[NodeName, int]]:
    """Yield (controller, controller epoch) of each that calls itself the leader: others refuse."""
    for node, answer in answers.items():
        for partition in _described(answer):
            yield node, int(partition.leader_epoch)


def _described(answer: DescribeQuorumResponse) -> Iterator[PartitionDescription]:
    if answer.error_code is ErrorCode.none:
        for topic in answer.topics:
            for partition in topic.partitions:
                if partition.error_code is ErrorCode.none:
                    yield partition
