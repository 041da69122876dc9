"""The options of the produce-poll workload; defaults suit a small cluster on one machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Final, Literal, cast

from pydantic import BeforeValidator, Field

from fencepost.history.manifest import Consumed, Promises
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.librdkafka import refused_setting
from fencepost.workloads.reading import FINAL_READERS_MAX, POLL_RECORDS_MAX, readers_of
from fencepost.workloads.values import VALUE_BYTES_MIN


class Consume(StrEnum):
    """The way in which consumers get their keys."""

    ASSIGN = "assign"
    """Each consumer assigns itself every key."""
    SUBSCRIBE = "subscribe"
    """All consumers are one group, and share the keys."""
    BOTH = "both"
    """Every other consumer assigns, the rest are a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducePollSpec:
    """Producers that write unique values to every key, consumers that read them.

    ValueError for a combination that cannot be; pydantic checks the single fields.
    """

    client: ClientLibrary = ClientLibrary.LIBRDKAFKA
    """The client library of the producers. Kafka's own is of the release under test, and sends some
    hundred records a second."""
    producers: Annotated[int, Field(ge=1, le=64)] = 2
    """The number of producers: two, so that records of different producers meet in a key."""
    consumers: Annotated[int, Field(ge=1, le=64)] = 2
    """With `both`, one reads everything without a group and one is a group."""
    rate: Annotated[float, Field(ge=0)] = 1000.0
    """Records a second, all producers together; 0: as fast as they can. 1000 costs each client a
    few per cent of a core, which leaves the machine to the brokers."""
    value_bytes: Annotated[int, Field(ge=VALUE_BYTES_MIN, le=900_000)] = 100
    """The bytes of a record's value: 8 that count, then padding. Brokers refuse 1 MB by default."""
    acks: Annotated[Literal["all", "1", "0"], BeforeValidator(str)] = "all"
    idempotence: bool = True
    consume: Consume = Consume.BOTH
    isolation: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """The isolation of the consumers. Final reads are always uncommitted: they read all there is.
    """
    message_timeout_ms: Annotated[int, Field(ge=1000, le=600_000)] = 15_000
    """The time after which a send that has no answer becomes info: longer than a failover takes (a
    session time-out of 3 to 9 s and an election), shorter than anyone wants to wait at the end of a
    run.
    """
    linger_ms: Annotated[int, Field(ge=0, le=60_000)] = 5
    batch_max: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Records that a producer hands to librdkafka at a time."""
    in_flight_max: Annotated[int, Field(ge=1, le=1_000_000)] = 20_000
    """Records of one producer whose end is not known yet. At 1000 records a second it is reached
    after 40 s without any answer, when their time-out has long passed."""
    reassign_s: Annotated[float, Field(ge=0)] = 10.0
    """Mean time until an assigning consumer assigns anew, going back over some records that it has
    read, to see whether they stayed; 0: never.
    """
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of librdkafka, for producers and consumers alike; those for the other kind are
    ignored. With `client: java` they are of the Java producers alone.
    """

    def __post_init__(self) -> None:
        if self.idempotence and self.acks != "all":
            raise ValueError(f"idempotence needs acks: all, found {self.acks}")
        if self.client is ClientLibrary.JAVA and not self.idempotence:
            raise ValueError("client: java needs idempotence: true")
        if self.consume == Consume.BOTH and self.consumers == 1:
            raise ValueError("consume: both needs 2 consumers or more, found 1")
        if self.linger_ms >= self.message_timeout_ms:
            raise ValueError(
                f"linger_ms must be less than message_timeout_ms, found {self.linger_ms} and "
                f"{self.message_timeout_ms}"
            )
        if (refusal := refused_setting(self.settings)) is not None:
            raise ValueError(refusal)

    @property
    def promises(self) -> Promises:
        """Return the promises to its clients, by their configuration."""
        consumed = cast("Consumed", str(self.consume))
        indices = range(self.consumers)
        members = [self.producers + one for one in indices if self.subscribes(one)]
        alone = {
            f"consumer-{one}": [self.producers + one] for one in indices if not self.subscribes(one)
        }
        readers = readers_of(
            alone | {"the group": members},
            stride=self.process_stride,
            poll_max=POLL_RECORDS_MAX,
            settings=self.consumer_settings,
        )
        return Promises(
            idempotent=self.idempotence, acks=self.acks, consume=consumed, readers=readers
        )

    @property
    def consumer_settings(self) -> Mapping[str, str]:
        """Return the settings of its consumers, which are librdkafka's."""
        return self.settings if self.client is ClientLibrary.LIBRDKAFKA else {}

    @property
    def process_stride(self) -> int:
        """Return by how much the numbers of a client and of the next one in its place differ."""
        return self.producers + self.consumers + FINAL_READERS_MAX

    def subscribes(self, consumer: int) -> bool:
        """Return whether a consumer is in the group, by its index."""
        every_other = self.consume == Consume.BOTH and consumer % 2 == 1
        return self.consume == Consume.SUBSCRIBE or every_other


KIND: Final = WorkloadKind(
    word="produce-poll",
    spec=ProducePollSpec,
    module="fencepost.workloads.produce_poll",
    simulated="fencepost.workloads.simulated.produce_poll",
)
