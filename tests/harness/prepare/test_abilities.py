"""Every step, word and kind of fault, on every kind of cluster: performed, or refused up front."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import yaml
from fake_cluster import NODES
from interpreter_doubles import STAGE, Bench, FakeClients, PacketCluster, network_of

from fencepost.clusters.kafka_conditions import LogEnd
from fencepost.clusters.kafka_port import ClusterView, FlippedPart, KafkaSpec, PartitionView
from fencepost.clusters.observation import Changed
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.oracle.oracle import DELIVERED, SENT, Oracle
from fencepost.clusters.reference.oracle.world_view import WorldView
from fencepost.clusters.reference.simulated.cluster import (
    CLIENTS_FROM,
    HARNESS_FROM,
    SimulatedCluster,
)
from fencepost.clusters.reference.simulated.quorum_kit import build
from fencepost.clusters.setting_changes import SettingChange
from fencepost.clusters.systems import KAFKA, MAKES, REFERENCE, SIMULATED
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.interpreter.books import Unwritten
from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.interpreter.observer import Observer
from fencepost.harness.interpreter.performer import Performer
from fencepost.harness.prepare.abilities import There, refuse_missing_abilities, why_not
from fencepost.harness.scenario.options import HostKind
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import library
from fencepost.harness.trials.directing import interpreter_of
from fencepost.harness.trials.plan import plan_of, why_not_tried
from fencepost.history.failure import UsageError
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.play import parse_play, step_word
from fencepost.nemesis.simulated.wire import SimulatedWire
from fencepost.nemesis.steps import dealt, kinds_of_play, places
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.partition import Means, Partition
from fencepost.nemesis.verbs.registry import EPISODES, KINDS, VERBS, kind_of
from fencepost.nemesis.verbs.start import StartsAnew
from fencepost.nemesis.verbs.step import Breaking, Play, Step
from fencepost.nemesis.verbs.wipe import Wipe

pytestmark = pytest.mark.slow

B = "broker-1"

FORMS: tuple[tuple[str, ...], ...] = (
    ("await: {log_end: {t-0: {broker-1: 1}}}",),
    ("await: {changed: {broker-1: meta.properties}}",),
    ("partition: {as: p, isolate: broker-1, by: packets}",),
    ("kill: broker-1", "heal: all"),
    ("partition: {as: p, isolate: broker-1}", "heal: p"),
    ("{restart: broker-1, to: 4.3.1}",),
    ("kill: broker-1", "{wipe: broker-1, by_tool: true}"),
    ("{cut_power: broker-1, torn: true}",),
    ("{repeat: 2, steps: [{wait: 10ms}]}",),
    ("choose: [[{wait: 10ms}]]",),
)
"""What takes another ability than the verb's example, and the blocks of a play."""
CASES = [*(verb.example for verb in VERBS.values()), *FORMS]
THERES = [
    There(make=kind, host=host, wired=wired)
    for kind in MAKES.values()
    for host in HostKind
    for wired in (True, False)
]
DISK_TROUBLES = {"fill_disk", "lock_disk", "fail_disk", "stall_disk", "slow_disk", "mend_disk"}
HARDSHIPS = {"skew", "unskew", "throttle", "unthrottle", "squeeze", "unsqueeze"}
PACKETS = {"partition by packets", "bandwidth"}
KAFKAS = {"restart to", "wipe by tool", "finalise", "add", "remove", "skew", "unskew"}
"""What takes releases, Kafka's own tool or its quorum, or a JVM that is asked for its clock."""
OF_CLIENTS = {"crash_client", "pause_client", "resume_client"}
OF_MACHINES = DISK_TROUBLES | HARDSHIPS | OF_CLIENTS | {"flip_bit", "await changed"}
REFUSED = {
    KAFKA: PACKETS,
    REFERENCE: PACKETS | KAFKAS,
    SIMULATED: PACKETS | KAFKAS | OF_MACHINES | {"lower_version"},
}
"""By kind of cluster, on this machine; everything else is performed."""
NOT_TRIED = {
    *("create_topic", "delete_topic", "reassign", "start_clients", "configure"),
    *("await log_end", "await changed"),
}
"""Beside what a simulated cluster cannot do."""


class AbleCluster(PacketCluster):
    """Can do everything that a play asks for."""

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        return self._say(f"create {topic.name} {via} {within_s}")

    def delete_topic(self, name: str, *, via: NodeName | None, within_s: float) -> str:
        return self._say(f"delete {name} {via} {within_s}")

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        return self._say(f"move {key} {leader} {within_s}")

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        return self._say(f"reassign {key} {replicas} {within_s} {awaited}")

    def flip_bit(self, node: NodeName, part: FlippedPart, *, seed: int) -> str:
        return self._say(f"flip {part} {node} {seed}")

    def log_end(self, node: NodeName, key: str) -> int | None:
        self._say(f"log end {node} {key}")
        return 1

    def change_settings(self, node: NodeName, settings: Mapping[str, str]) -> str:
        return self._say(f"configure {node} {settings}")

    def setting_changes(self) -> Sequence[SettingChange]:
        return ()

    directory = Path()

    def data_of(self, node: NodeName) -> Path:
        """A directory in which a file is written a moment later."""
        self._say(f"data of {node}")
        Timer(0.1, (self.directory / "meta.properties").write_text, ("",)).start()
        return self.directory

    def _say(self, call: str) -> str:
        self.calls.append(call)
        return call


class Spied:
    """A cluster or a wire that notes what is asked of it, but for looks at it."""

    def __init__(self, inner: SimulatedCluster | SimulatedWire) -> None:
        self._inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if callable(value) and name not in LOOKS:
            self.calls.append(name)
        return value


LOOKS = ("state", "controller_leader", "run", "broker_id", "status")


def play(*steps: object) -> Play:
    return parse_play(list(steps), STAGE)


def named(step: Step) -> str:
    """The word of the step, and what of it is an ability of its own."""
    match step:
        case StartsAnew(release=str()):
            return f"{step_word(step)} to"
        case Wipe(by_tool=True):
            return f"{step_word(step)} by tool"
        case Partition(by=Means.PACKETS):
            return "partition by packets"
        case Await(condition=LogEnd()):
            return "await log_end"
        case Await(condition=Changed()):
            return "await changed"
        case _:
            return step_word(step)


STEPS = [play(*map(yaml.safe_load, steps)) for steps in CASES]
each_step = pytest.mark.parametrize("steps", STEPS, ids=[named(steps[-1]) for steps in STEPS])


def test_every_word_and_every_kind_of_step_is_among_the_cases() -> None:
    assert {step_word(steps[-1]) for steps in STEPS} == {*VERBS, "repeat", "choose"}


@each_step
def test_a_run_performs_it_and_each_fault_is_written_down_with_its_kind(
    steps: Play, tmp_path: Path
) -> None:
    with able_bench(tmp_path) as b:
        b.interpreter.perform_play(steps[:-1], time_limit_s=20)
        before = seen(b)
        b.interpreter.perform_play(steps[-1:], time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert seen(b) != before
        rows = b.faults().to_pylist()
    assert tuple(dict.fromkeys(row["kind"] for row in rows)) == kinds_of_play(steps)
    assert set(kinds_of_play(steps)) <= set(KINDS)


@each_step
def test_it_is_refused_where_it_cannot_be_done_and_nowhere_else(
    steps: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    for looks_at_machine in ("why_no_rules", "why_no_limits"):
        monkeypatch.setattr(f"harness.prepare.abilities.{looks_at_machine}", lambda: None)
    step, name = steps[-1], named(steps[-1])
    for kind, refused in REFUSED.items():
        why = why_not(step, There(make=kind))
        assert (why is not None) == (name in refused), (kind, why)
    assert all(why_not(step, there) != "" for there in THERES)
    over_ssh = why_not(step, There(make=KAFKA, host=HostKind.SSH))
    on_this_machine = {"skew", "throttle", "squeeze", "flip_bit", "await changed"}
    assert (over_ssh is not None) == (name in PACKETS | on_this_machine)


@each_step
def test_a_trial_performs_it_or_refuses_it(steps: Play) -> None:
    step = steps[-1]
    refused = why_not(step, There(make=SIMULATED)) or why_not_tried(step)
    simulated = REFUSED[SIMULATED]
    assert (refused is not None) == (named(step) in simulated | NOT_TRIED), refused
    if refused is None:
        stage, cluster, wire = trial_stage()
        for one in steps[:-1]:
            assert stage.perform(one, end_s=60.0)
        before = happened(cluster, wire)
        for _, one in dealt((step,), random.Random(1)):
            assert stage.perform(one, end_s=60.0)
        assert happened(cluster, wire) != before or isinstance(step, Await)


@pytest.mark.parametrize("kind", EPISODES)
def test_a_kind_of_fault_that_a_mix_draws_is_refused_or_each_of_its_steps_can_be_done(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for looks_at_machine in ("why_no_rules", "why_no_limits"):
        monkeypatch.setattr(f"harness.prepare.abilities.{looks_at_machine}", lambda: None)
    scenario = load_scenario(written(tmp_path, nemesis={"faults": [kind]}), [])
    for there in THERES:
        steps = drawn(kind)
        assert steps
        try:
            refuse_missing_abilities(scenario, there)
        except UsageError as error:
            assert f"scenario.yaml:6: nemesis.faults[0]: {kind}: this cluster" in str(error)  # noqa: PT017
            # One kind of cluster may do a part of it; then it does none.
            continue
        assert [why for step in steps if (why := why_not(step, there))] == []
        if there == There(make=SIMULATED):
            assert [why for step in steps if (why := why_not_tried(step))] == []


@pytest.mark.parametrize("path", library().values(), ids=lambda p: p.stem)
def test_a_shipped_scenario_is_tried_whole_or_refused_with_the_word_and_its_place(
    path: Path,
) -> None:
    scenario = load_scenario(path, [])
    if isinstance(scenario.cluster, KafkaSpec):
        level = (("cluster", "metadata_version"), "3", "--metadata-version")
        scenario = load_scenario(path, [level])
    try:
        plan = plan_of(scenario, seed=1)
    except UsageError as error:
        placed = re.match(rf"{path}:\d+: (play|nemesis|cluster|workload)\S*: ", str(error))
        assert placed or str(error).startswith(f"{path.stem}: "), error  # noqa: PT017
    else:
        for _, step in places(plan.play or ()):
            assert why_not_tried(step) is None


def test_disks_are_not_tried_without_a_word() -> None:
    with pytest.raises(
        UsageError, match=r"disks.yaml:25: play\[1\]: fill_disk: this cluster cannot"
    ):
        plan_of(load_scenario(Path("scenarios/nightly/disks.yaml"), []), seed=1)


def test_a_trial_has_no_combined_nodes() -> None:
    path = Path("scenarios/nightly/combined-storm.yaml")
    line = 1 + path.read_text().splitlines().index("  combined: true")
    with pytest.raises(
        UsageError, match=rf":{line}: cluster\.combined: .* run the scenario instead"
    ):
        plan_of(load_scenario(path, []), seed=1)


def test_a_step_within_a_block_is_refused_where_it_stands(tmp_path: Path) -> None:
    block = [{"repeat": 2, "steps": [{"wait": "1s"}, {"choose": [[{"flip_bit": B}]]}]}]
    scenario = load_scenario(written(tmp_path, play=[{"kill": B}, *block]), [])
    with pytest.raises(UsageError, match=r"play\[1\].steps\[1\].choose\[0\]\[0\]: flip_bit"):
        refuse_missing_abilities(scenario, There(make=SIMULATED))


def test_what_a_mix_does_is_of_its_kind() -> None:
    for kind in EPISODES:
        kinds = {kind_of(step) for step in drawn(kind) if isinstance(step, Breaking)}
        assert kinds == {kind}


@contextmanager
def able_bench(directory: Path) -> Iterator[Bench]:
    """What drives a run, on a cluster in memory that can do everything."""
    b = Bench(directory)
    b.cluster = AbleCluster()
    b.cluster.directory = directory
    played = b.interpreter.played
    b.performer = Performer(b.cluster, journal=b.journal, played=played)
    b.network = network_of(b.cluster, b.wire, journal=b.journal, played=played)
    observer = Observer(b.cluster, acknowledged=lambda: 0, wire=b.network.status)
    b.interpreter = replace_parts(b, observer)
    with observer:
        yield b


def replace_parts(b: Bench, observer: Observer) -> Interpreter:
    return Interpreter(
        cluster=b.cluster,
        performer=b.performer,
        network=b.network,
        clients=ClientFaults(FakeClients(), journal=b.journal, played=b.interpreter.played),
        played=b.interpreter.played,
        observer=observer,
        draw=random.Random(1),
        on_tick=lambda _now_s, _now: None,
    )


def seen(b: Bench) -> tuple[object, ...]:
    """What cluster and wire got to feel, and, for what only lets time pass, the time."""
    cluster = b.cluster
    assert isinstance(cluster, AbleCluster)
    of_wire = (sorted(b.wire.rules), sorted(b.wire.blocked), tuple(b.wire.calls))
    performed = yaml.safe_load(b.run.play_path.read_text()) or []
    known = {"wait", "await", "start_clients", *OF_CLIENTS}
    idle = len([step for step in performed if step.keys() & known])
    return (*cluster.calls, sorted(cluster.dropped), sorted(cluster.rates), of_wire, idle)


def trial_stage() -> tuple[Interpreter, Spied, Spied]:
    """The stage of a trial, on a cluster that is up."""
    cluster = build(KafkaSpec(controllers=1, brokers=3), seed=1, rules=Rules())
    world = cluster.world
    wire = SimulatedWire(world, journal=None, clients_from=CLIENTS_FROM, harness_from=HARNESS_FROM)
    insides = WorldView(world.hosts)
    oracle = Oracle(insides, lease_ns=10**9, min_isr=1, clients_from=CLIENTS_FROM)
    world.watch(oracle, sent=SENT, delivered=DELIVERED)
    cluster.start()
    cluster.create_topics((TopicSpec(name="t", assignment=((1, 2, 3),)),))
    spies = Spied(cluster), Spied(wire)
    draw = random.Random(1)
    books = Unwritten()
    stage = interpreter_of(
        spies[0],  # type: ignore[arg-type]
        wire=spies[1],  # type: ignore[arg-type]
        oracle=oracle,
        draw=draw,
        journal=books,
        played=books,
    )
    return stage, *spies


def happened(cluster: Spied, wire: Spied) -> tuple[object, ...]:
    """What the cluster, its wire and its network were asked for, and the time."""
    blocked = cluster.world.network.is_blocked((1, 2)), cluster.world.network.is_blocked((2, 1))
    return tuple(cluster.calls), tuple(wire.calls), blocked, cluster.world.now_ns


def drawn(kind: str) -> list[Step]:
    """What a mix of this kind alone does within ten minutes on a cluster that is whole."""
    view = ClusterView(
        time_ns=0,
        brokers=frozenset((1, 2, 3)),
        serving=frozenset((1, 2, 3)),
        partitions={"t-0": PartitionView(leader=1, isr=(1, 2, 3), replicas=(1, 2, 3))},
    )
    ids = {node: int(node[-1]) for node in NODES[1:]}
    scene = Scene(nodes=NODES, broker_ids=ids, view=view, active_controller=NODES[0])
    mix = Mix(MixSpec(faults=(kind,)), random.Random(1), ("t-0",))
    return [
        step
        for now_s in range(600)
        for step in mix.due(float(now_s), scene=scene, impaired=frozenset())
    ]


def written(directory: Path, **schedule: object) -> Path:
    """A scenario file with this schedule, whose line is the sixth."""
    path = directory / "scenario.yaml"
    head = "name: s\ncluster: {brokers: 3}\n\ntopics: [{name: t}]\nworkload: {kind: produce-poll}\n"
    rest = yaml.safe_dump(schedule, default_flow_style=True, width=10_000).strip()
    path.write_text(head + rest.removeprefix("{").removesuffix("}") + "\n")
    return path
