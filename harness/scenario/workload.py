"""The words under `workload`: one workload of records, and what goes on beside it.

SpecError with the path to what cannot be; the scenario says in which file and line that is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusters.kafka_port import KafkaSpec, TopicSpec, of_kafka
from clusters.port import ClusterSpec
from clusters.system import System
from clusters.systems import system_of
from harness.scenario.validation import Reader, build, mapping, settings
from history.failure import Mistakes, SpecError
from nemesis.words import did_you_mean
from workloads.membership_spec import MembershipSpec
from workloads.metadata_spec import MetadataSpec
from workloads.produce_poll_spec import ProducePollSpec
from workloads.transactions_spec import TransactionsSpec

__all__ = ["RecordsSpec", "Workloads", "kind_of", "parse_workloads", "path_of_records"]

RecordsSpec = ProducePollSpec | TransactionsSpec
"""What writes and reads records."""

_RECORD_WORKLOADS: Mapping[str, type[RecordsSpec]] = {
    "produce-poll": ProducePollSpec,
    "transactions": TransactionsSpec,
}
_WORKLOADS_BESIDE: Mapping[str, type[MetadataSpec | MembershipSpec]] = {
    "metadata": MetadataSpec,
    "membership": MembershipSpec,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workloads:
    """What a scenario's clients do."""

    records: RecordsSpec
    metadata: MetadataSpec | None
    membership: MembershipSpec | None


def parse_workloads(value: object, cluster: ClusterSpec, topics: Sequence[TopicSpec]) -> Workloads:
    """One workload of records, alone or in a list with one of metadata, of membership, or both.

    No `topics`: they could not be read.
    """
    specs, mistakes = [], Mistakes()
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        with mistakes.below(*([index] if isinstance(value, list) else [])):
            spec = _workload(item, system_of(cluster))
            specs.append(spec)
            if isinstance(spec, MembershipSpec):
                _refuse_immovable(spec, of_kafka(cluster), topics)
    mistakes.refuse()
    records = [spec for spec in specs if isinstance(spec, ProducePollSpec | TransactionsSpec)]
    metadata = [spec for spec in specs if isinstance(spec, MetadataSpec)]
    membership = [spec for spec in specs if isinstance(spec, MembershipSpec)]
    if len(records) != 1 or len(metadata) > 1 or len(membership) > 1:
        raise SpecError(
            (),
            f"expected one workload of {' or '.join(_RECORD_WORKLOADS)}, and beside it one of "
            f"{' and one of '.join(_WORKLOADS_BESIDE)}, or none",
        )
    return Workloads(
        records=records[0],
        metadata=metadata[0] if metadata else None,
        membership=membership[0] if membership else None,
    )


def _refuse_immovable(
    spec: MembershipSpec, cluster: KafkaSpec, topics: Sequence[TopicSpec]
) -> None:
    mistakes, brokers = Mistakes(), cluster.brokers
    if spec.replicas_min >= brokers:
        found = f"{spec.replicas_min} replicas on {brokers} brokers have nowhere to go"
        mistakes.note(("replicas_min",), found)
    if spec.replicas_max is not None and spec.replicas_max > brokers:
        mistakes.note(("replicas_max",), f"{spec.replicas_max} replicas on {brokers} brokers")
    keys_count = sum(len(topic.keys) for topic in topics)
    if topics and spec.movers > keys_count:
        found = f"each mover needs a partition of its own, found {keys_count} of them"
        mistakes.note(("movers",), found)
    mistakes.refuse()


def kind_of(spec: RecordsSpec | MetadataSpec | MembershipSpec) -> str:
    """The word under `kind` for such a workload."""
    kinds = {**_RECORD_WORKLOADS, **_WORKLOADS_BESIDE}
    return next(kind for kind, type_ in kinds.items() if type_ is type(spec))


def path_of_records(path: tuple[str, ...], data: Mapping[str, Any]) -> tuple[str | int, ...]:
    """Of two workloads, what a flag says is about the one of records."""
    listed = data.get("workload")
    if path[0] != "workload" or not isinstance(listed, list):
        return path
    kinds = [item.get("kind") if isinstance(item, dict) else None for item in listed]
    index = next((place for place, kind in enumerate(kinds) if kind in _RECORD_WORKLOADS), 0)
    return (path[0], index, *path[1:])


def _workload(value: object, system: System) -> RecordsSpec | MetadataSpec | MembershipSpec:
    data = mapping(value, example="{kind: produce-poll, rate: 1000}")
    kind = str(data.pop("kind", None))
    known = [one for one in (*_RECORD_WORKLOADS, *_WORKLOADS_BESIDE) if one in system.workloads]
    if kind not in known:
        raise SpecError(("kind",), f"unknown workload {kind!r}; {did_you_mean(kind, known)}")
    if kind in _WORKLOADS_BESIDE:
        return build(_WORKLOADS_BESIDE[kind], data)
    read = Reader(data)
    data = data | {"settings": read.at("settings", settings, otherwise=dict[str, str]())}
    return read.mistakes.refuse_after(lambda: build(_RECORD_WORKLOADS[kind], data))
