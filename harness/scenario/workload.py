"""The words under `workload`: one workload of records, and what goes on beside it.

SpecError with the path to what cannot be; the scenario says in which file and line that is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from packaging.version import InvalidVersion, Version

from clusters.kafka_port import BrokersSpec, TopicSpec
from clusters.port import ClusterSpec
from harness.scenario.validation import MappingReader, build, mapping, settings
from history.failure import Mistakes, SpecError
from nemesis.words import did_you_mean
from workloads.kind import WorkloadKind
from workloads.produce_poll_spec import ProducePollSpec
from workloads.registry import KINDS, kind_of
from workloads.transactions_spec import TransactionsSpec

__all__ = ["RecordsSpec", "parse_workloads", "path_of_records"]

RecordsSpec = ProducePollSpec | TransactionsSpec
"""The spec of the workload that writes and reads records."""


def parse_workloads(
    value: object, cluster: ClusterSpec, topics: Sequence[TopicSpec]
) -> tuple[Any, ...]:
    """Return one workload of records, alone or in a list with others of other kinds beside it.

    The one of records is first. No `topics`: they could not be read.
    """
    kinds = [kind for kind in KINDS.values() if isinstance(cluster, kind.for_clusters)]
    specs, mistakes = [], Mistakes()
    for index, item in enumerate(value if isinstance(value, list) else [value]):
        with mistakes.below(*([index] if isinstance(value, list) else [])):
            spec = _workload(item, kinds)
            specs.append(spec)
            _refuse_old_release(kind_of(spec), cluster)
            kind_of(spec).check(spec, cluster, topics)
    mistakes.refuse()
    specs.sort(key=lambda spec: kind_of(spec).first_process)
    beside = [kind_of(spec).beside for spec in specs]
    if beside.count(False) != 1 or len(set(map(type, specs))) < len(specs):
        raise SpecError(
            (),
            f"expected one workload of {_listed(kinds, beside=False, last=' or ')}, and beside it "
            f"one of {_listed(kinds, beside=True, last=' and one of ')}, or none",
        )
    return tuple(specs)


def _refuse_old_release(kind: WorkloadKind, cluster: ClusterSpec) -> None:
    if not (isinstance(cluster, BrokersSpec) and cluster.may_be_old):
        return
    try:
        is_old = Version(cluster.release) < Version(kind.since)
    except InvalidVersion:
        return  # a build of the user's own is not known yet
    if is_old:
        found = f"the clients of {kind.word} need Kafka {kind.since}, found {cluster.release}"
        raise SpecError(("kind",), found)


def _listed(kinds: Sequence[WorkloadKind], *, beside: bool, last: str) -> str:
    return last.join(kind.word for kind in kinds if kind.beside is beside)


def path_of_records(path: tuple[str, ...], data: Mapping[str, Any]) -> tuple[str | int, ...]:
    """Return the path of a flag, which among several workloads is about the one of records."""
    listed = data.get("workload")
    if path[0] != "workload" or not isinstance(listed, list):
        return path
    words = [str(item.get("kind")) if isinstance(item, dict) else "" for item in listed]
    of_records = {kind.word for kind in KINDS.values() if not kind.beside}
    index = next((place for place, word in enumerate(words) if word in of_records), 0)
    return (path[0], index, *path[1:])


def _workload(value: object, kinds: Sequence[WorkloadKind]) -> Any:
    data = mapping(value, example="{kind: produce-poll, rate: 1000}")
    word = str(data.pop("kind", None))
    known = {kind.word: kind.spec for kind in kinds}
    if word not in known:
        raise SpecError(("kind",), f"unknown workload {word!r}; {did_you_mean(word, known)}")
    read = MappingReader(data)
    if "settings" in data:
        data = data | {"settings": read.at("settings", settings, otherwise=dict[str, str]())}
    return read.mistakes.refuse_after(lambda: build(known[word], data))
