"""The options of the metadata workload; defaults suit a small cluster on one machine."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Final

from pydantic import Field

from fencepost.history.manifest import Promises
from fencepost.workloads.kind import WorkloadKind

_SETTLED_READS_S: Final = 5.0
"""The time for reads of metadata that are held to their age."""
_SLACK_S: Final = 5.0
"""The time of a write that waits for one time-out, on a machine that is busy."""


class ReadingClient(StrEnum):
    """The client that reads."""

    OWN = "own"
    """A connection to one broker, on which nothing is tried again."""
    LIBRDKAFKA = "librdkafka"
    """A stock client: it starts at one broker, and lists topics at any."""
    KAFKA_PYTHON = "kafka-python"
    """A stock client of other code, which asks the least loaded broker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSpec:
    """Writers that create, alter, grow and delete topics of their own; readers that describe them.

    ValueError for a combination that cannot be; pydantic checks the single fields.
    """

    writers: Annotated[int, Field(ge=1, le=64)] = 3
    """The number of writers. Each asks one broker after the other and waits for the answer: a
    broker that is paused holds up each writer once in a while, and never all the time.
    """
    write_rate: Annotated[float, Field(gt=0, le=1000)] = 10.0
    """Writes a second, all writers together."""
    read_rate: Annotated[float, Field(gt=0, le=5000)] = 60.0
    """Reads a second, all brokers together: of topics and of settings by turns. With 3 brokers each
    is read every 50 ms, which is the resolution of a measured age.
    """
    reader: ReadingClient = ReadingClient.OWN
    topics: Annotated[int, Field(ge=1, le=200)] = 6
    """The number of topics that a workload has at a time, shared out among the writers. One of each
    writer's, if it has several, stays to the end and is only altered. What arrives after nobody
    waits for it any more is found and deleted (`workloads.generators.topic_lives`).
    """
    partitions: Annotated[int, Field(ge=1, le=100)] = 1
    """The partitions of each topic, when it is created."""
    grows: Annotated[int, Field(ge=0, le=100)] = 1
    """The number of partitions that a topic is given between its creation and its deletion."""
    replication_factor_min: Annotated[int, Field(ge=1, le=10)] = 1
    """The smallest number of replicas of a topic."""
    replication_factor_max: Annotated[int, Field(ge=1, le=10)] = 3
    """The largest number of replicas of a topic, and never more than there are brokers."""
    alters: Annotated[int, Field(ge=0, le=1000)] = 3
    """Changes of a setting between the creation of a topic and its deletion."""
    lives: Annotated[int, Field(ge=1, le=100)] = 2
    """The number of times that a name is created before another one takes its place: from 2 on, one
    name stands for several topic ids.
    """
    write_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 5000
    """The time after which a write without an answer becomes info, and its topic is deleted."""
    read_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 2000
    age_max_ms: Annotated[float, Field(ge=0)] | None = None
    """A promise to hold the cluster to: no read lacks a state that was known for longer than this.
    None: the age of reads is only a figure.
    """

    settled_age_max_ms: Annotated[float, Field(ge=0)] | None = None
    """The same promise, of reads that are called when nothing has been broken for `settle_ms`: a
    broker that is cut off may be of any age. The run goes on for that long after its last
    heal, and a little longer."""
    settle_ms: Annotated[float, Field(ge=0, le=600_000)] = 5000.0
    """The time that brokers are given to start, to be unfenced, and to catch up."""

    def __post_init__(self) -> None:
        if self.topics < self.writers:
            raise ValueError(
                f"each writer needs a topic of its own, found topics: {self.topics} and "
                f"writers: {self.writers}"
            )
        if self.replication_factor_min > self.replication_factor_max:
            raise ValueError(
                "replication_factor_max must be at least replication_factor_min, found "
                f"{self.replication_factor_max} and {self.replication_factor_min}"
            )

    def replication_factors(self, *, brokers: int) -> range:
        """Return the replication factors of topics on so many brokers."""
        least, most = min(self.replication_factor_min, brokers), self.replication_factor_max
        return range(least, min(most, brokers) + 1)


def _promised(spec: MetadataSpec, promises: Promises) -> Promises:
    """Return the promises: of metadata as the spec says, of records as before."""
    return replace(
        promises,
        metadata_age_max_ms=spec.age_max_ms,
        metadata_settled_age_max_ms=spec.settled_age_max_ms,
        metadata_settle_ms=spec.settle_ms,
        topics_max=spec.topics,
    )


def _operations(spec: MetadataSpec) -> dict[str, float | None]:
    """Return the writes by the time of two lives of a topic; a change of settings needs one more.

    A writer goes from one of its topics to the next with each write, and one life is its creation,
    its changes, its growth and its deletion.
    """
    topics_max = -(-spec.topics // spec.writers)
    life_s = (2 + spec.alters + spec.grows) * topics_max * spec.writers / spec.write_rate
    fs = ["create-topic", "delete-topic"]
    fs += ["alter-config"] if spec.alters or topics_max > 1 else []
    fs += ["create-partitions"] if spec.grows else []
    return dict.fromkeys(fs, 2 * life_s + _SLACK_S)


def _settling_s(spec: MetadataSpec) -> float:
    """Return the time until there are settled reads, if these are held to an age."""
    return 0.0 if spec.settled_age_max_ms is None else spec.settle_ms / 1000 + _SETTLED_READS_S


KIND: Final = WorkloadKind(
    word="metadata",
    spec=MetadataSpec,
    module="fencepost.workloads.metadata",
    simulated="fencepost.workloads.simulated.metadata",
    since="3.1",
    beside=True,
    first_process=100_000,
    tables=lambda _spec: ("describes", "metadata_writes", "partition_writes"),
    operations=_operations,
    promised=_promised,
    settling_s=_settling_s,
)
