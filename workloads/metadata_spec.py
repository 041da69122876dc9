"""What can be asked of the metadata workload; defaults suit a small cluster on one machine."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

__all__ = ["MetadataSpec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataSpec:
    """Writers that create, alter, grow and delete topics of their own; readers that describe them.

    ValueError for a combination that cannot be; pydantic checks the single fields.
    """

    writers: Annotated[int, Field(ge=1, le=64)] = 3
    """Each asks one broker after the other and waits for the answer: a broker that is paused holds
    up each writer once in a while, and never all the time."""
    write_rate: Annotated[float, Field(gt=0, le=1000)] = 10.0
    """Writes a second, all writers together."""
    read_rate: Annotated[float, Field(gt=0, le=5000)] = 60.0
    """Reads a second, all brokers together: of topics and of settings by turns. With 3 brokers
    each is read every 50 ms, which is how sharply an age is told."""
    topics: Annotated[int, Field(ge=1, le=200)] = 6
    """That a workload has at a time, shared out among the writers. One of each writer's, if it has
    several, stays to the end and is only altered."""
    partitions: Annotated[int, Field(ge=1, le=100)] = 1
    """Of each topic, when it is created."""
    grows: Annotated[int, Field(ge=0, le=100)] = 1
    """Times that a topic is given one partition more between its creation and its deletion."""
    replication_factor_max: Annotated[int, Field(ge=1, le=10)] = 3
    """Each topic has one to so many replicas, and never more than there are brokers."""
    alters: Annotated[int, Field(ge=0, le=1000)] = 3
    """Changes of a setting between the creation of a topic and its deletion."""
    lives: Annotated[int, Field(ge=1, le=100)] = 2
    """How often a name is created before another one takes its place: from 2 on, one name stands
    for several topic ids."""
    write_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 5000
    """When a write without an answer becomes info, and its topic is left alone."""
    read_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 2000
    age_max_ms: Annotated[float, Field(ge=0)] | None = None
    """A promise to hold the cluster to: no read lacks what was known for longer than this. None:
    how old reads are is a figure."""

    settled_age_max_ms: Annotated[float, Field(ge=0)] | None = None
    """The same promise, of reads that are called when nothing has been broken for `settle_ms`: a
    broker that is cut off may be as old as it likes. The run goes on for so long after its last
    heal, and a little longer."""
    settle_ms: Annotated[float, Field(ge=0, le=600_000)] = 5000.0
    """What brokers are given to start, to be unfenced, and to catch up."""

    def __post_init__(self) -> None:
        if self.topics < self.writers:
            raise ValueError(
                f"each writer needs a topic of its own, found topics: {self.topics} and "
                f"writers: {self.writers}"
            )
