"""A scenario: which cluster, what the clients do, what goes wrong, and what to expect of it.

A scenario file is checked whole before anything starts; each thing that cannot be is one line with
its file and line number, and with the words that exist there. Where a part cannot be read, the rest
is read as if anything could stand there, so that no mistake brings others with it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from fencepost.clusters.kafka_port import BrokersSpec, KafkaSpec
from fencepost.clusters.port import ClusterSpec
from fencepost.clusters.stage import Stage
from fencepost.clusters.system import System
from fencepost.clusters.systems import system_of
from fencepost.clusters.topic_spec import TopicSpec, keys_of
from fencepost.harness.scenario.composed import PARAMETERS, as_value, composed
from fencepost.harness.scenario.expectation import Expectation, parse_expectations
from fencepost.harness.scenario.mix import parse_mix
from fencepost.harness.scenario.on_other_system import SYSTEM_KEY, on_other_system
from fencepost.harness.scenario.requirement import (
    NO_REQUIRE,
    Requirement,
    narrowed,
    parse_requirement,
    waived,
    without_demands,
)
from fencepost.harness.scenario.sections import (
    RecordsSpec,
    parse_cluster,
    parse_topics,
    parse_workloads,
    path_of_records,
    refuse_removal,
)
from fencepost.harness.scenario.trial_spec import Storm, TrialSpec
from fencepost.harness.scenario.validation import MappingReader, build, mapping
from fencepost.harness.scenario.yaml_file import Document, load_document
from fencepost.history.failure import SpecError
from fencepost.history.manifest import Promises
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.play import parse_play
from fencepost.nemesis.steps import flat, kinds_of_play, prerequisites_of, uses_clients
from fencepost.nemesis.verbs.members import RemoveNodes
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.reassign import Reassign
from fencepost.nemesis.verbs.registry import EPISODES
from fencepost.nemesis.verbs.step import Play
from fencepost.nemesis.window_kinds import asked_messages, asked_windows
from fencepost.nemesis.words import duration_s
from fencepost.workloads.registry import kind_of

T = TypeVar("T")

_AFTER_HEALING_S: Final = 1.0
"""The time for operations after the last heal, for the record."""

_KEYS = [
    "name",
    "title",
    "issue",
    "cluster",
    "topics",
    "workload",
    "nemesis",
    "play",
    "time_limit",
    "recovery_limit",
    "clients_through_proxy",
    "require",
    "expect",
    "trial",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The data from which a run is made, except its seed."""

    document: Document
    name: str
    title: str
    issue: str | None
    cluster: ClusterSpec
    topics: tuple[TopicSpec, ...]
    workload: RecordsSpec
    """The workload that writes and reads records."""
    beside: tuple[Any, ...]
    """The workloads that go on beside it, by the kinds of `workloads.registry`."""
    mix: MixSpec | None
    play: Play | None
    """The play; with neither mix nor play the run is a control: clients alone, nothing breaks."""
    time_limit_s: float
    """The duration of faults and clients; with a play, an upper bound."""
    recovery_limit_s: float
    """The bound on the time until the cluster is whole again after healing."""
    expect: tuple[Expectation, ...]
    require: Requirement = field(default_factory=Requirement)
    waived: tuple[str, ...] = ()
    """The demands of its file that a flag took back, a sentence each."""
    drawn: bool = False
    """True if its faults come from a seed, also those that a replay repeats."""
    trial: TrialSpec | None = None
    """The spec of a trial of `fencepost simulate`, with its own draws and actions; else None."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters that were filled in from outside, as `--set` takes their values."""
    clients_through_proxy: bool = False
    """Lead the clients' links over the proxy even where no step needs it: their RPCs are taped."""

    @property
    def promises(self) -> Promises:
        """The promises to clients: of records by one workload, of metadata by another."""
        promises = self.workload.promises
        for spec in self.beside:
            promises = kind_of(spec).promised(spec, promises)
        return promises

    @property
    def workloads(self) -> tuple[Any, ...]:
        """The workloads of all its clients, that of records first."""
        return (self.workload, *self.beside)

    def beside_of(self, spec: type[T]) -> T | None:
        """Return the workload of this kind beside that of records; None if it has none."""
        return next((one for one in self.beside if isinstance(one, spec)), None)

    @property
    def clients_after_healing_s(self) -> float:
        """The time for which clients go on after healing: until there are settled reads."""
        return max(_AFTER_HEALING_S, *(kind_of(one).settling_s(one) for one in self.workloads))

    @property
    def prerequisites(self) -> frozenset[Prerequisite]:
        """The means that its nodes start with, for its steps and the faults that are drawn."""
        drawn = self.mix.faults if self.mix is not None else ()
        examples = (step for kind in drawn for step in EPISODES[kind].example())
        return prerequisites_of((*(self.play or ()), *examples))

    @property
    def asked_faults(self) -> tuple[str, ...]:
        """The kinds of fault that a run of it is asked for (`nemesis.verbs.registry`)."""
        return _asked(self.mix, self.play)

    @property
    def asked_operations(self) -> Mapping[str, float | None]:
        """The kinds of operation that its clients set out to do (`WorkloadKind.operations`).

        Of a trial none: its clients ask for metadata in a way of their own.
        """
        asked: dict[str, float | None] = {}
        if self.trial is not None:
            return asked
        for spec in self.workloads:
            asked |= kind_of(spec).operations(spec)
        return asked

    @property
    def asked_windows(self) -> tuple[str, ...]:
        """The kinds of window that its mix may open."""
        if self.mix is None:
            return ()
        nodes, roles = self.cluster.nodes, self.cluster.node_roles
        return asked_windows(self.mix, nodes=nodes, roles=roles)

    @property
    def wires_clients(self) -> bool:
        """True if the clients' links go over the proxy, too."""
        return self.clients_through_proxy or uses_clients(self.play or ())

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of all topics, in order."""
        return keys_of(self.topics)

    def without_faults(self) -> "Scenario":
        """Return the control of this scenario: the same cluster and clients, and nothing breaks."""
        by = "--nemesis none"
        document = self.document.without("nemesis", "play", "require", "expect", "trial", flag=by)
        return replace(
            self,
            waived=waived(document, Requirement()),
            document=document,
            mix=None,
            play=None,
            drawn=False,
            require=Requirement(),
            expect=(),
            trial=None,
        )


def load_scenario(path: Path, overrides: Sequence[tuple[tuple[str, ...], object, str]]) -> Scenario:
    """Return the scenario in a file, with (path, value, flag) overrides.

    A UsageError names the place.
    """
    chosen = {
        name: value for (key, *names), value, _ in overrides if key == PARAMETERS for name in names
    }
    document = composed(load_document(path), chosen)
    for key_path, value, flag in overrides:
        if key_path[0] == PARAMETERS:
            continue
        if key_path == SYSTEM_KEY:
            document = on_other_system(document, str(value), flag)
            continue
        path_here = path_of_records(key_path, document.data)
        laid = without_demands(document.data) if flag == NO_REQUIRE else value
        document = document.with_flag(path_here, laid, flag)
    parameters = {name: as_value(value) for name, value in chosen.items()}
    return replace(parse_scenario(document), parameters=parameters)


def parse_scenario(document: Document) -> Scenario:
    """Return the scenario that a document states; a UsageError names file and line."""
    try:
        return _parse(document)
    except SpecError as error:
        raise document.error(error) from None


def _parse(document: Document) -> Scenario:
    data = document.data
    read = MappingReader(data)
    cluster = _cluster_of(read)
    system = system_of(cluster)
    _refuse_keys(read, system)
    topics: tuple[TopicSpec, ...] = ()
    if isinstance(cluster, BrokersSpec):
        topics = read.at("topics", lambda value: parse_topics(value, cluster), otherwise=())
    specs = read.at(
        "workload", lambda value: parse_workloads(value, cluster, topics), otherwise=None
    )
    refuse_removal(topics, cluster, specs or (), read.mistakes)
    stage = _stage(data, cluster, topics, specs or ())
    mix = read.at("nemesis", lambda value: parse_mix(value, stage), otherwise=None)
    play = read.at("play", lambda value: parse_play(value, stage), otherwise=None)
    require = read.at("require", parse_requirement, otherwise=Requirement())
    time_limit_s = read.at("time_limit", _duration, otherwise=45.0)
    if not {"nemesis", "play", "time_limit"} & read.unread:
        with read.mistakes.below("require"):
            roles = stage.node_roles
            held = () if mix is None else asked_messages(mix, nodes=stage.nodes, roles=roles)
            require = narrowed(document, require, asked=_asked(mix, play), windows=held)
    name = read.at("name", _name, otherwise="")
    recovery_limit_s = read.at("recovery_limit", _duration, otherwise=90.0)
    expect = read.at("expect", parse_expectations, otherwise=())
    trial = read.at("trial", lambda value: _trial(value, data), otherwise=None)
    through_proxy = read.at("clients_through_proxy", _boolean, otherwise=False)
    read.mistakes.refuse()
    assert specs is not None, "refused"
    return Scenario(
        document=_with_requirement(document, require),
        name=name,
        title=str(data.get("title", data["name"])),
        issue=str(data["issue"]) if "issue" in data else None,
        cluster=cluster,
        topics=topics,
        workload=specs[0],
        beside=specs[1:],
        mix=None if mix is None else replace(mix, demanded=require.faults),
        play=play,
        time_limit_s=time_limit_s,
        recovery_limit_s=recovery_limit_s,
        expect=expect,
        require=require,
        waived=waived(document, require),
        drawn=mix is not None or (trial is not None and trial.draws),
        trial=trial,
        clients_through_proxy=through_proxy,
    )


def _refuse_keys(read: MappingReader, system: System) -> None:
    """Note the keys that do not exist, those that are missing, and those that go not together."""
    unknown = read.refuse_unknown(_KEYS)
    if "topics" in read.data and not system.keyed:
        read.mistakes.note(("topics",), f"a cluster of {system.name} has no topics")
    for required in ("name", *(("topics",) if system.keyed else ()), "workload"):
        # A key that was misspelt is one mistake, not two.
        if required not in read.data and not get_close_matches(required, unknown):
            read.mistakes.note((), f"a scenario needs {required!r}")
    if "nemesis" in read.data and "play" in read.data:
        read.mistakes.note(("play",), "a scenario has a nemesis or a play, not both")


def _cluster_of(read: MappingReader) -> ClusterSpec:
    """Return the cluster; where it cannot be, a stand-in that causes no further refusals."""
    value = read.data.get("cluster")
    try:
        return parse_cluster(value)
    except SpecError as error:
        read.mistakes.add(error.below("cluster"))
        wrong = {one.path[0] for one in error.all if one.path}
    right = {k: v for k, v in value.items() if k not in wrong} if isinstance(value, dict) else {}
    try:
        return parse_cluster({key: _WIDEST[key] for key in _WIDEST if key in wrong} | right)
    except SpecError:
        return parse_cluster(_WIDEST)


_WIDEST: Final = {"controllers": 5, "brokers": 9}


def _asked(mix: MixSpec | None, play: Play | None) -> tuple[str, ...]:
    return kinds_of_play(play or ()) if mix is None else tuple(dict.fromkeys(mix.faults))


def _with_requirement(document: Document, require: Requirement) -> Document:
    """Return the document as it is run, whose requirement flags may have narrowed."""
    if "require" not in document.data or parse_requirement(document.data["require"]) == require:
        return document
    return document.with_flag(("require",), require.as_data(), "command line")


class _AnyKeys(tuple[str, ...]):
    """The keys of topics that could not be read: any that a play names may be among them."""

    __slots__ = ()

    def __contains__(self, key: object) -> bool:
        return True


def _stage(
    data: Mapping[str, Any],
    cluster: ClusterSpec,
    topics: tuple[TopicSpec, ...],
    specs: Sequence[Any],
) -> Stage:
    """Return what the play may name. Any broker may become a replica of a key that is reassigned.

    `specs`: of the workloads, one of which may reassign all of them.
    """
    stage = Stage(
        nodes=cluster.nodes,
        system=system_of(cluster).name,
        roles=cluster.roles,
        node_roles=cluster.node_roles,
        keys=keys_of(topics) or (_AnyKeys() if system_of(cluster).keyed else ()),
        broker_ids=cluster.member_ids,
        spares=cluster.spares,
        fixed=cluster.fixed,
        # Only Kafka's releases are known to follow each other; other nodes keep theirs.
        release=cluster.release if isinstance(cluster, KafkaSpec) else "",
        metadata_version=cluster.protocol_level or "",
    )
    if "play" not in data or any(kind_of(spec).moves_replicas for spec in specs):
        return stage
    try:
        play = parse_play(data["play"], stage)
    except SpecError:
        return stage  # what is wrong is said when it is read on this stage
    if any(isinstance(step, RemoveNodes) for step in flat(play)):
        return stage  # what a node leaves behind goes to any other
    moved = {key for step in flat(play) if isinstance(step, Reassign) for key in step.replicas}
    replicas = {
        f"{topic.name}-{partition}": ids
        for topic in topics
        for partition, ids in enumerate(topic.assignment or ())
    }
    return replace(stage, replicas={k: ids for k, ids in replicas.items() if k not in moved})


_SCHEDULES: Final = {Storm.PLAY: "play", Storm.MIX: "nemesis"}


def _trial(value: object, data: Mapping[str, Any]) -> TrialSpec:
    spec = build(TrialSpec, mapping(value, example="{storm: windows}"))
    for key in _SCHEDULES.values():
        if (key in data) is not (_SCHEDULES.get(spec.storm) == key):
            words = "excludes" if key in data else "needs"
            raise SpecError(("storm",), f"storm {spec.storm} {words} a `{key}` in the scenario")
    return spec


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise SpecError((), f"expected true or false, found {value!r}")
    return value


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,99}", value):
        # It becomes the name of a directory.
        found = f"found {value!r:.120}"
        raise SpecError((), f"a name is of a-z, 0-9, '-' and '.', 100 at most, {found}")
    return value


def _duration(value: object) -> float:
    seconds = duration_s(value)
    if seconds <= 0:
        raise SpecError((), "expected more than 0s")
    return seconds
