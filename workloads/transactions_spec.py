"""The options of the transactions workload; defaults suit a small cluster on one machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Final

from pydantic import Field

from fencepost.history.manifest import Promises, Readers
from fencepost.history.operation import FETCH_OFFSETS, SEND_OFFSETS
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.generators.intents import Intent
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.reading import FINAL_READERS_MAX, POLL_RECORDS_MAX, readers_of
from fencepost.workloads.transactional_settings import refused_transactional_setting
from fencepost.workloads.values import VALUE_BYTES_MIN

_TRANSACTIONS_SURE: Final = 20
"""Transactions, on the average, of an intent of which one has surely been drawn."""
_SLACK_S: Final = 15.0
"""The time in which producers get their ids and one transaction ends, on a machine that is busy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsSpec:
    """Producers that run one transaction after the other, consumers that read what is committed.

    ValueError for a combination that cannot be; pydantic checks the single fields.
    """

    client: ClientLibrary = ClientLibrary.LIBRDKAFKA
    """The client library of the producers."""
    readers: Annotated[tuple[ClientLibrary, ...], Field(min_length=1, max_length=16)] = (
        ClientLibrary.LIBRDKAFKA,
    )
    """The client libraries of the consumers, in turn: `[librdkafka, java]` with two consumers is
    one of each. The final reads are always librdkafka's.
    """
    client_release: str | None = None
    """The release whose jars Java clients run on; None: the release under test."""
    producers: Annotated[int, Field(ge=1, le=16)] = 2
    """Two, so that a transaction of the one is open while the other commits."""
    transactional_ids: Annotated[int, Field(ge=1, le=16)] | None = None
    """The number of ids that the producers share; None: one each. Producers of one id fence each
    other.
    """
    consumers: Annotated[int, Field(ge=1, le=16)] = 1
    rate: Annotated[float, Field(ge=0)] = 10.0
    """Transactions a second, all producers together; 0: as fast as they can."""
    transactions: Annotated[int, Field(ge=1)] | None = None
    """The number of transactions after which a producer sends nothing any more; None: until it is
    told to stop.
    """
    stop_on_failure: bool = False
    """A producer whose transaction did not end as it set out to sends nothing any more, like an
    application that would rather stop than go on. The rest of its transaction stays so."""
    records_per_transaction: Annotated[int, Field(ge=1, le=10_000)] = 4
    """The first half, rounded up, before the transaction is left open, the rest afterwards. Of each
    transaction every key gets a record before one gets two."""
    takes: Annotated[int, Field(ge=0, le=500)] = 0
    """The largest number of committed records that a transaction takes in first; it sends the
    offsets after them with it (consume, transform, produce), for a group that each transactional id
    has to itself; 0: it only produces.
    """
    open_ms: Annotated[int, Field(ge=0, le=600_000)] = 0
    """The time that a transaction is left open after its first half was acknowledged."""
    pattern: tuple[Intent, ...] = ()
    """The intended ends of transactions, in turn and from the start again; empty: at random."""
    abort_share: Annotated[float, Field(ge=0, le=1)] = 0.3
    """The share of aborts among the transactions that end at random."""
    value_bytes: Annotated[int, Field(ge=VALUE_BYTES_MIN, le=900_000)] = 100
    transaction_timeout_ms: Annotated[int, Field(ge=1000, le=900_000)] = 10_000
    """The time after which the coordinator aborts what is left open: long after what a transaction
    takes.
    """
    request_timeout_ms: Annotated[int, Field(ge=500, le=60_000)] = 3000
    """The time after which a request without an answer is sent again, over a new connection."""
    delivery_timeout_ms: Annotated[int, Field(ge=500, le=600_000)] = 8000
    """The time after which a record without an answer is given up: the transaction can only abort
    then.
    """
    end_timeout_ms: Annotated[int, Field(ge=1000, le=600_000)] = 30_000
    """The time after which a commit or abort without an answer is given up: its end is unknown
    then.
    """
    reassign_s: Annotated[float, Field(ge=0)] = 10.0
    """The mean time until a consumer goes back over records it has read; 0: never."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings of the producers, in the words of their client."""

    def __post_init__(self) -> None:
        if self.client_release is not None and not self.needs_java:
            raise ValueError(f"client_release needs client: java, found client: {self.client}")
        if len(self.readers) > self.consumers:
            raise ValueError(f"{len(self.readers)} readers for {self.consumers} consumers")
        if self.transactional_ids is not None and self.transactional_ids > self.producers:
            raise ValueError(
                f"{self.transactional_ids} transactional_ids for {self.producers} producers"
            )
        _refuse_disorder(
            request_timeout_ms=self.request_timeout_ms,
            delivery_timeout_ms=self.delivery_timeout_ms,
            transaction_timeout_ms=self.transaction_timeout_ms,
        )
        if (refusal := refused_transactional_setting(self.settings)) is not None:
            raise ValueError(refusal)

    @property
    def promises(self) -> Promises:
        """Return the promises to its clients as configured: transactions are idempotent."""
        alone = {f"consumer-{one}": [self.producers + one] for one in range(self.consumers)}
        intakes: dict[str, list[int]] = {}
        for one in range(self.producers if self.takes else 0):
            intakes.setdefault(self.intake_group(one), []).append(self.intake_process(one))
        readers = (
            *self._readers(alone, poll_max=POLL_RECORDS_MAX),
            *self._readers(intakes, poll_max=self.takes),
        )
        return Promises(idempotent=True, acks="all", consume="assign", readers=readers)

    @property
    def process_stride(self) -> int:
        """Return by how much the numbers of a client and of the next one in its place differ."""
        return 2 * self.producers + self.consumers + FINAL_READERS_MAX

    def intake_process(self, producer: int) -> int:
        """Return the first number of a producer's intake: they follow those of final readers."""
        return self.producers + self.consumers + FINAL_READERS_MAX + producer

    def intake_group(self, producer: int) -> str:
        """Return the group of a producer's intake: producers of one id share it."""
        return f"{self.transactional_id(producer)}-intake"

    def _readers(
        self, processes: Mapping[str, Sequence[int]], *, poll_max: int
    ) -> tuple[Readers, ...]:
        # The settings of the spec are the producers'.
        return readers_of(processes, stride=self.process_stride, poll_max=poll_max, settings={})

    @property
    def needs_java(self) -> bool:
        """Return whether any client is Kafka's own."""
        return ClientLibrary.JAVA in (self.client, *self.readers)

    def reader(self, consumer: int) -> ClientLibrary:
        """Return the client library of a consumer, by the consumer's number."""
        return self.readers[consumer % len(self.readers)]

    def transactional_id(self, producer: int) -> str:
        """Return the id of a producer, by its number."""
        return f"fencepost-{producer % (self.transactional_ids or self.producers)}"


def _refuse_disorder(**timeouts: int) -> None:
    """Both clients refuse these, each in words of its own."""
    ordered = list(timeouts.items())
    for (shorter, low), (longer, high) in pairwise(ordered):
        if low > high:
            raise ValueError(f"{shorter} must be at most {longer}, found {low} and {high}")


def _tables(spec: TransactionsSpec) -> tuple[str, ...]:
    return ("transactions", "stable_offsets", *(("group_offsets",) if spec.takes else ()))


def _operations(spec: TransactionsSpec) -> dict[str, float | None]:
    """Return the ends of transactions, and what is asked about a group's offsets."""
    share = spec.pattern.count(Intent.ABORT) / len(spec.pattern) if spec.pattern else None
    shares = {Intent.ABORT: spec.abort_share if share is None else share}
    shares[Intent.COMMIT] = 1 - shares[Intent.ABORT]
    ends = {str(end): _due_s(spec, of_all) for end, of_all in sorted(shares.items()) if of_all > 0}
    offsets = (FETCH_OFFSETS, SEND_OFFSETS) if spec.takes else ()
    return ends | dict.fromkeys(offsets)


def _due_s(spec: TransactionsSpec, share: float) -> float | None:
    """Return the time by which one with this share has ended; None where the rate is not known."""
    if not spec.rate:
        return None
    return _TRANSACTIONS_SURE / (spec.rate * share) + spec.open_ms / 1000 + _SLACK_S


KIND: Final = WorkloadKind(
    word="transactions",
    spec=TransactionsSpec,
    module="fencepost.workloads.transactions",
    tables=_tables,
    operations=_operations,
)
