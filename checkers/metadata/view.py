"""The common basis of the control-plane checks: the log of record, replayed.

A check of it judges nothing where there is no log of record: it answers with that doubt.

Every check asks for the same view of the same table, and to replay the log of a long night takes
seconds. So the caller of several checks (`checkers.group_pass`) builds a view once and gives it to
each.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion, broker_histories
from fencepost.checkers.metadata.log_of_record import LogOfRecord, log_of_record
from fencepost.checkers.metadata.partition_states import PartitionHistory, partition_histories
from fencepost.checkers.metadata.sessions import Term, TermsOfNodes, terms_of
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import Keep, Source, everything, source_of

METADATA: Final = "metadata"
"""The key of what concerns no partition and no broker alone."""

_LEGACY: Final = "4"
"""The version of BrokerInfo of a broker below the behaviour of controller heartbeats."""
_NS_A_SECOND: Final = 1_000_000_000


@dataclass(frozen=True, kw_only=True, eq=False)
class MetadataView:
    """The facts of the run, and the log of record with what it says of partitions and brokers."""

    run: Facts
    """The facts of the run without its log of record."""
    metadata_log: pa.Table | Source
    """The table, replayed at the first use; callers must not change it."""
    keep: Keep = everything
    """The records that are replayed: those of a slice of the run, or all."""

    @cached_property
    def facts(self) -> Facts:
        """The facts of the run, with the batches of the log."""
        return replace(self.run, followings_ms=self._followings_ms)

    def _followings_ms(self, timestamp_ms: int) -> Sequence[int]:
        # Not bound to the log itself: a check that asks for no time does not have it replayed.
        return self.log.batches.followings_ms(timestamp_ms)

    @cached_property
    def log(self) -> LogOfRecord:
        """The log of record."""
        return log_of_record(self.metadata_log, self.run, keep=self.keep)

    def details_of(self, type_: str) -> Iterator[tuple[int, str | None]]:
        """Yield (metadata offset, all fields in one line) of a type's records in nodes' logs."""
        for batch in source_of(self.metadata_log)(("type", "metadata_offset", "detail")):
            mine = batch.filter(pc.equal(batch.column("type"), type_))
            told = (mine.column(name).to_pylist() for name in ("metadata_offset", "detail"))
            yield from zip(*told, strict=True)

    def detail(self, node: str, metadata_offset: int) -> str:
        """Return all fields of a record in a node's log in one line, for people."""
        columns = ("node", "snapshot", "metadata_offset", "detail")
        for batch in source_of(self.metadata_log)(columns):
            is_its = pc.and_(
                pc.and_(pc.equal(batch.column("node"), node), pc.invert(batch.column("snapshot"))),
                pc.equal(batch.column("metadata_offset"), metadata_offset),
            )
            for detail in batch.filter(is_its).column("detail").to_pylist():
                return detail or ""
        return ""

    @property
    def known_until_ns(self) -> int:
        """The moment until which the log of record surely has everything that was decided."""
        return self.facts.earliest_ns(self.log.end_timestamp_ms)

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the controllers that the log of record tells of, in order."""
        return terms_of(self.log, self.facts)

    @cached_property
    def terms_of_nodes(self) -> TermsOfNodes:
        """The same terms by node."""
        return TermsOfNodes(self.terms)

    @cached_property
    def partitions(self) -> Mapping[tuple[str, int], PartitionHistory]:
        """The history of each partition by (topic id, partition)."""
        return partition_histories(self.log.records)

    @cached_property
    def brokers(self) -> Mapping[int, BrokerHistory]:
        """The history of each broker by broker id."""
        return broker_histories(self.log.records)

    @cached_property
    def _registered_versions(self) -> Mapping[int, Sequence[tuple[int, str | None]]]:
        """The registrations on ZooKeeper of each broker id: offset, and version of BrokerInfo."""
        found: dict[int, list[tuple[int, str | None]]] = {}
        for one in self.log.records:
            if one.type == "BrokerInfoRecord" and one.broker_id is not None:
                found.setdefault(one.broker_id, []).append((one.metadata_offset, one.value))
        return found

    def is_legacy(self, broker_id: int, metadata_offset: int) -> bool:
        """Return whether a broker was registered as legacy then: it writes ISRs itself."""
        versions = self._registered_versions.get(broker_id, ())
        last = [version for offset, version in versions if offset <= metadata_offset]
        return bool(last) and last[-1] == _LEGACY

    def doubt_at_the_end(self) -> str:
        """Return why the last versions may not be those of the end of the run; empty without doubt.

        A living controller writes twice a second, so a log that ends before the run was not read
        to its end, or its controllers were down.
        """
        end_ns = self.facts.taken_by_ns(self.log.end_timestamp_ms)
        if self.log.doubt or self.facts.end_ns is None or end_ns >= self.facts.end_ns:
            return self.log.doubt
        return (
            f"the metadata log ends at {clock(end_ns)}, before the run ({clock(self.facts.end_ns)})"
        )

    def histories(self) -> Iterator[PartitionHistory]:
        """Yield the histories of all partitions, in the order of their creation."""
        return iter(self.partitions.values())

    def histories_of(self, key: str) -> Sequence[PartitionHistory]:
        """Return those of the partitions that were called that, in the order of their creation."""
        return self._by_key.get(key, ())

    @cached_property
    def _by_key(self) -> Mapping[str, Sequence[PartitionHistory]]:
        called: dict[str, list[PartitionHistory]] = {}
        for one in self.histories():
            called.setdefault(one.key, []).append(one)
        return called

    def broker_before(self, broker_id: int, metadata_offset: int) -> BrokerVersion | None:
        """Return a broker as it was just before this offset; None if nothing is known."""
        history = self.brokers.get(broker_id)
        return None if history is None else history.before(metadata_offset)


def doubtful(check: str, doubt: str) -> Iterable[tuple[str, Found]]:
    """Return the answer of a check that cannot judge anything."""
    return [(METADATA, none(check, METADATA, cases=0, doubt=doubt))]


def by_partition(
    check: str, seen: MetadataView, judged: Callable[[PartitionHistory], Iterable[Proof | None]]
) -> Iterator[tuple[str, Found]]:
    """Yield the findings on each partition; the doubt instead if there is no log of record.

    `judged`: of each case on a partition the proof that it breaks the rule, or None if it holds.
    """
    if seen.log.doubt:
        yield from doubtful(check, seen.log.doubt)
    for history in seen.histories():
        yield history.key, counted(check, history.key, judged(history))


def first_calls(records: pa.Table) -> Mapping[str, int]:
    """Return when each key in RECORDS was first called."""
    first = records.group_by("key").aggregate([("call_ns", "min")])
    return dict(zip(first["key"].to_pylist(), first["call_ns_min"].to_pylist(), strict=True))


def by_key(
    check: str,
    first_called_ns: Mapping[str, int],
    seen: MetadataView,
    judged: Callable[[PartitionHistory], Found],
) -> Iterator[tuple[str, Found]]:
    """Yield the findings on each key; the doubt instead if the log does not tell its partition.

    `first_called_ns`: the first call of each key. A topic that was deleted before any client used
    its name is not the one that they used.
    """
    if first_called_ns and seen.log.doubt:
        yield from doubtful(check, seen.log.doubt)
        return
    for key, first_ns in sorted(first_called_ns.items()):
        histories = [
            one
            for one in seen.histories_of(key)
            if one.deleted_ms is None or seen.facts.latest_ns(one.deleted_ms) >= first_ns
        ]
        if len(histories) == 1:
            yield key, judged(histories[0])
        else:
            doubt = f"{len(histories)} partitions of the metadata log were called {key}"
            yield key, none(check, key, cases=0, doubt=doubt)


def counted(
    check: str, key: str, answers: Iterable[Proof | None], *, doubt: str = "", allowed: bool = False
) -> Found:
    """Return the findings on a key. An answer is the proof that a case breaks the rule, or None.

    `allowed`: whatever was found is legal.
    """
    told = list(answers)
    proofs = [answer for answer in told if answer is not None]
    legal = len(proofs) if allowed else 0
    return spelled(check, key, proofs, cases=len(told), doubt=doubt, allowed_count=legal)


def spelled(
    check: str,
    key: str,
    proofs: Sequence[Proof],
    *,
    cases: int,
    doubt: str = "",
    allowed_count: int = 0,
) -> Found:
    """Return the findings on a key from its proofs: the last `allowed_count` are legal."""
    numbers = np.arange(len(proofs))
    cut = len(proofs) - allowed_count
    return found(
        check,
        key,
        cases=cases,
        never=numbers[:cut],
        allowed=numbers[cut:],
        proof=proofs.__getitem__,
        doubt=doubt,
    )


def clock(time_ns: int) -> str:
    """Return a time of the run, for people."""
    return f"{time_ns / _NS_A_SECOND:.3f} s"
