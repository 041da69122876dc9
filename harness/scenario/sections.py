"""Sections of a scenario file: the words under `cluster`, `topics` and `workload`.

They say which system, and what its clusters are made of; partitions, copies, and where these lie;
and one workload of records, with what goes on beside it. A section raises SpecError with the path
to what cannot be; the scenario says in which file and line that is.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields
from typing import Any, Final

from packaging.version import InvalidVersion, Version

from fencepost.clusters.kafka_port import BrokersSpec
from fencepost.clusters.port import KEY, ClusterSpec
from fencepost.clusters.systems import SYSTEMS
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.scenario.validation import (
    MappingReader,
    build,
    mapping,
    settings,
)
from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.words import did_you_mean
from fencepost.workloads.kind import WorkloadKind
from fencepost.workloads.produce_poll_spec import ProducePollSpec
from fencepost.workloads.registry import KINDS, kind_of
from fencepost.workloads.transactions_spec import TransactionsSpec

_MIN_ISR: Final = "min.insync.replicas"
_RETENTION_LEAST: Final = {
    "ms": 86_400_000,
    "minutes": 1440,
    "hours": 24,
    "bytes": 1 << 40,
}
"""A day, which no run lasts, and a size that no partition of a run reaches."""
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


def parse_topics(value: object, cluster: BrokersSpec) -> tuple[TopicSpec, ...]:
    """Return the topics of a cluster; raise SpecError with the paths to what cannot be."""
    if not isinstance(value, list) or not value:
        raise SpecError((), "expected a list of topics, e.g. [{name: t, partitions: 6}]")
    topics: list[TopicSpec] = []
    mistakes = Mistakes()
    for index, item in enumerate(value):
        with mistakes.below(index):
            topic = _topic(item, brokers=cluster.brokers)
            _refuse_unreachable_isr(topic, {**cluster.broker_settings, **cluster.settings})
            if topic.name in {other.name for other in topics}:
                raise SpecError(("name",), f"topic {topic.name!r} is listed twice")
            topics.append(topic)
    mistakes.refuse()
    return tuple(topics)


def _refuse_unreachable_isr(topic: TopicSpec, of_brokers: Mapping[str, str]) -> None:
    """Raise SpecError if no ISR of the topic can be as large as its settings demand."""
    stated = topic.settings.get(_MIN_ISR, of_brokers.get(_MIN_ISR, "1"))
    copies = max(map(len, topic.assignment or ()), default=topic.replication_factor)
    if stated.isdecimal() and int(stated) > copies:
        found = f"{stated}, and {topic.name} has {copies} replicas: nothing would be acknowledged"
        raise SpecError(("settings", _MIN_ISR), found)


def refuse_removal(
    topics: Sequence[TopicSpec], cluster: ClusterSpec, specs: Sequence[Any], mistakes: Mistakes
) -> None:
    """Note settings by which records go away in a run: to the checks these would be lost.

    `specs`: of the workloads, that of records first.
    """
    if not isinstance(cluster, BrokersSpec) or not isinstance(next(iter(specs), None), RecordsSpec):
        return
    for index, topic in enumerate(topics):
        _note_removal(topic.settings, "", ("topics", index, "settings"), mistakes)
    for key in ("settings", "broker_settings"):
        _note_removal(getattr(cluster, key), "log.", ("cluster", key), mistakes)


def _note_removal(
    settings: Mapping[str, str], prefix: str, path: tuple[str | int, ...], mistakes: Mistakes
) -> None:
    if "compact" in settings.get(f"{prefix}cleanup.policy", ""):
        found = "compaction removes records, which checks would call lost; expected delete"
        mistakes.note((*path, f"{prefix}cleanup.policy"), found)
    for unit, least in _RETENTION_LEAST.items():
        value = settings.get(name := f"{prefix}retention.{unit}", "")
        if value.isdecimal() and int(value) < least:
            found = (
                f"it removes records, which checks would call lost; expected {least} or more, or -1"
            )
            mistakes.note((*path, name), found)


def _topic(item: object, *, brokers: int) -> TopicSpec:
    read = MappingReader(mapping(item, example="{name: t, partitions: 6}"))
    data = {**read.data, "settings": read.at("settings", settings, otherwise=dict[str, str]())}
    if "replicas" in data:
        if "partitions" in data or "replication_factor" in data:
            raise SpecError(
                ("replicas",),
                "`replicas` excludes `partitions` and `replication_factor`: it implies both",
            )
        data["replication_factor"] = read.at("replicas", _copies, otherwise=1)
    data.setdefault("replication_factor", min(3, brokers))
    return read.mistakes.refuse_after(lambda: _placed(data, brokers))


def _copies(replicas: object) -> int:
    """Return the largest number of copies among these replicas, as far as they are lists."""
    lists = replicas if isinstance(replicas, list) else []
    return max((len(one) for one in lists if isinstance(one, list)), default=0)


def _placed(data: Mapping[str, Any], brokers: int) -> TopicSpec:
    topic = build(TopicSpec, data, called={"assignment": "replicas"})
    mistakes, copies = Mistakes(), topic.replication_factor
    with mistakes.below():
        topic.check()
    if not 1 <= copies <= brokers:
        found = f"expected 1 to {brokers} replicas on {brokers} brokers, found {copies}"
        mistakes.note(("replication_factor",), found)
    for index, replicas in enumerate(topic.assignment or ()):
        if len(set(replicas)) != len(replicas) or not set(replicas) <= set(range(1, brokers + 1)):
            found = f"expected different brokers from 1 to {brokers}, found {list(replicas)}"
            mistakes.note(("replicas", index), found)
    mistakes.refuse()
    return topic


def parse_cluster(value: object) -> ClusterSpec:
    """Return the spec of a cluster of the system that `system` names, of Kafka by default.

    Raise SpecError with the paths to what cannot be.
    """
    data = mapping(value, example="{brokers: 3, kafka: 4.3.1}")
    name = str(data.pop("system", next(iter(SYSTEMS))))
    if name not in SYSTEMS:
        raise SpecError(("system",), f"unknown system {name!r}; {did_you_mean(name, SYSTEMS)}")
    kind = SYSTEMS[name].spec
    known = {str(one.metadata.get(KEY, one.name)): one for one in fields(kind)}
    read = MappingReader(data)
    read.refuse_unknown(["system", *known])
    stated = {
        key: read.at(key, _parser(known[key]), otherwise=None) for key in data if key in known
    }
    right = {key: stated[key] for key in stated if key not in read.unread}
    called = {one.name: key for key, one in known.items()}
    return read.mistakes.refuse_after(lambda: _checked(build(kind, right, called=called)))


def _checked(spec: ClusterSpec) -> ClusterSpec:
    spec.check()
    return spec


def _parser(of: Field[Any]) -> Callable[[object], object]:
    """Return the parser of this field. Versions are texts: YAML takes 3.5 for a number."""
    if of.name.endswith("settings"):
        return settings
    is_text = "str" in str(of.type) and "tuple" not in str(of.type)
    return _text if is_text else lambda value: value


def _text(value: object) -> str | None:
    if isinstance(value, float):
        raise SpecError((), f"{value!r} is a number; quote it: '{value}'")
    return None if value is None else str(value)
