"""Schedules performed on a cluster in memory: what is done, what is written down, how it ends."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from fake_cluster import NODES, FakeCluster
from fake_wire import FakeWire
from interpreter_doubles import STAGE, Bench, PacketCluster, network_of, play

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import NodeName, NodeRoles, NodeState
from fencepost.harness.interpreter import cutting
from fencepost.harness.interpreter.books import PerformedPlay
from fencepost.harness.interpreter.mixing import perform_mix
from fencepost.harness.interpreter.policy import Policy
from fencepost.harness.interpreter.window_book import WindowBook
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import RowJournal, journal_lines
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.play import parse_play
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Resume
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.wire.rules import Delay

B1 = NamedNodes(nodes=(NODES[1],))


@contextmanager
def bench(
    directory: Path,
    acknowledged: Callable[[], int] = lambda: 0,
    cluster: FakeCluster | None = None,
) -> Iterator[Bench]:
    built = Bench(directory, acknowledged=acknowledged, cluster=cluster)
    with built.observer:
        yield built


def test_a_play_is_performed_in_order_and_written_down_with_the_nodes_it_came_to(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"kill": "leader of t-0"},
            {"await": {"leader": {"t-0": 2}}},
            {"wipe": "broker-1"},
            {"start": "broker-1"},
            {"await": "recovered"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert b.cluster.calls == ["kill broker-1", "wipe broker-1", "start broker-1"]
        assert b.performed()[0] == {"kill": "broker-1"}
        assert len(parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)) == 5
        faults = b.faults().to_pylist()
    assert [(row["fault"], row["targets"]) for row in faults] == [
        ("kill", ["broker-1"]),
        ("wipe", ["broker-1"]),
    ]
    for row in faults:
        assert row["begin_ns"] <= row["effect_ns"] <= row["end_ns"]


def test_a_restart_is_of_each_node_in_turn_and_of_the_release_that_it_names(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(
            play({"restart": "all brokers", "to": "4.3.1"}, {"finalise": "4.3"}), time_limit_s=20
        )
        assert b.interpreter.shortfalls == []
        in_turn = [
            call
            for node in NODES[1:]
            for call in (f"stop {node}", f"release {node} 4.3.1", f"start {node}")
        ]
        assert b.cluster.calls == [*in_turn, "finalise 4.3"]
        assert [step["restart"] for step in b.performed()[:3]] == list(NODES[1:])
        rows = b.faults().to_pylist()
    assert [row["targets"] for row in rows] == [[node] for node in NODES[1:]]
    for row, later in pairwise(rows):
        assert row["begin_ns"] <= row["effect_ns"] <= row["end_ns"] <= later["begin_ns"]


class CombinedCluster(FakeCluster):
    """Its first broker votes, too."""

    node_roles = NodeRoles(second={NODES[1]: "controller"})

    def await_follower(self, controller: NodeName, *, within_s: float) -> str:
        assert within_s > 0
        self.calls.append(f"follows {controller}")
        return "it follows"


def test_a_restart_waits_for_both_roles_of_a_node(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        cluster = CombinedCluster()
        cluster.calls, cluster.states = b.cluster.calls, b.cluster.states
        b.interpreter.cluster = cluster
        b.interpreter.perform_play(play({"restart": "all brokers"}), time_limit_s=20)
        assert [call for call in b.cluster.calls if "follows" in call] == ["follows broker-1"]
        before = b.cluster.calls.index("follows broker-1")
        assert b.cluster.calls.index("stop broker-2") > before


def test_a_restart_whose_node_does_not_come_back_ends_the_play(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.policy = Policy(restart_s=0.2)
        b.cluster.fenced.add(NODES[1])
        steps = play({"restart": "broker-1"}, {"kill": "broker-2"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.cluster.calls == ["stop broker-1", "start broker-1"]
        (shortfall,) = b.interpreter.shortfalls
    assert "its bound passed; broker-1 takes no part" in shortfall


class ElectingCluster(FakeCluster):
    """Of its controllers the first leads; once it is down, it is named for a while yet."""

    def __init__(self, *, elects: bool) -> None:
        super().__init__()
        self._elects = elects
        self._asked = 0

    def leader_now(self) -> NodeName | None:
        if self.states[NODES[0]] is NodeState.RUNNING:
            return NODES[0]
        self._asked += 1
        return NODES[1] if self._elects and self._asked > 3 else NODES[0]


TWO_KILLS = play({"kill": "active controller"}, {"kill": "active controller"})


def test_a_play_goes_on_with_the_next_active_controller_once_there_is_one(tmp_path: Path) -> None:
    with bench(tmp_path, cluster=ElectingCluster(elects=True)) as b:
        b.interpreter.perform_play(TWO_KILLS, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert b.cluster.calls == [f"kill {NODES[0]}", f"kill {NODES[1]}"]


def test_a_play_ends_where_no_active_controller_follows_in_time(tmp_path: Path) -> None:
    with bench(tmp_path, cluster=ElectingCluster(elects=False)) as b:
        b.interpreter.policy = Policy(vacant_s=0.3)
        b.interpreter.perform_play(TWO_KILLS, time_limit_s=20)
        assert b.cluster.calls == [f"kill {NODES[0]}"]
        (shortfall,) = b.interpreter.shortfalls
    assert "no controller says that it is active" in shortfall


def test_a_dead_controller_is_not_awaited_as_the_active_one(tmp_path: Path) -> None:
    steps = play({"kill": "active controller"}, {"await": {"active_controller": str(NODES[0])}})
    with bench(tmp_path, cluster=ElectingCluster(elects=False)) as b:
        b.interpreter.perform_play(steps, time_limit_s=1)
        (shortfall,) = b.interpreter.shortfalls
    assert "its bound passed" in shortfall


def test_who_was_removed_is_neither_missed_nor_started_nor_drawn(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"kill": "broker-3"},
            {"remove": "broker-3"},
            {"await": "recovered"},
            {"kill": "all brokers"},
            {"heal": "all"},
            {"add": "broker-3"},
            {"await": "recovered"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert "start broker-3" not in b.cluster.calls
        assert b.cluster.calls.count("kill broker-3") == 1
        assert b.performer.died_by_themselves() == ()
        assert {row["end_ns"] is None for row in b.faults().to_pylist()} == {False}


def test_an_await_that_passes_its_bound_ends_the_play_and_is_named(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"await": {"leader": {"t-0": 3}}, "within": "200ms"}, {"kill": "broker-2"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.cluster.calls == []
        (shortfall,) = b.interpreter.shortfalls
    assert "step 1 of 2" in shortfall
    assert "its bound passed" in shortfall


def test_an_await_counts_acknowledged_sends_from_its_own_begin(tmp_path: Path) -> None:
    count = iter(range(100, 10_000, 3))
    with bench(tmp_path, acknowledged=lambda: next(count)) as b:
        b.interpreter.perform_play(play({"await": {"acknowledged": 30}}), time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert next(count) >= 130


def test_a_play_stops_at_the_time_limit_of_the_run(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"wait": "200ms"}, {"kill": "broker-1"}), time_limit_s=0.1)
        assert b.cluster.calls == []
        assert "the time limit of the run passed" in b.interpreter.shortfalls[0]


def test_healing_resumes_the_paused_and_starts_the_dead(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"kill": "broker-1"}, {"pause": ["broker-2", "broker-3"]})
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        assert set(b.cluster.states.values()) == {NodeState.RUNNING}
        assert {row["end_ns"] is None for row in b.faults().to_pylist()} == {False}


def test_healing_mends_disks_and_starts_what_died_of_them_once(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"fill_disk": "broker-1"}, {"stall_disk": "broker-2"}, {"kill": "broker-3"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.performer.died_by_themselves() == ()
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        assert b.cluster.calls[-3:] == ["mend broker-1", "mend broker-2", "start broker-3"]
        rows = b.faults().to_pylist()
    assert [row["evidence"] for row in rows[:2]] == [
        "broker-1: its disk is full, it is seen",
        "broker-2: its disk is stalled, it is seen",
    ]
    assert {row["end_ns"] is None for row in rows} == {False}
    assert [row["heal_evidence"].split(";")[0] for row in rows[:2]] == [
        "broker-1 had ended",
        "broker-2 went on",
    ]


def test_a_node_that_dies_of_its_disk_after_that_was_mended_is_started_once(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(
            play({"slow_disk": "broker-1"}, {"mend_disk": "broker-1"}), time_limit_s=20
        )
        for calls in (2, 3, 3):
            assert len(b.cluster.calls) == calls
            b.cluster.states[NODES[1]] = NodeState.DOWN
            b.performer.settle(b.observer.latest())
        assert b.cluster.calls[1:] == ["mend broker-1", "mend broker-1"]
        b.cluster.states[NODES[1]] = NodeState.RUNNING
        b.interpreter.heal(limit_s=10)
        (row,) = b.faults().to_pylist()
    assert row["heal_evidence"].startswith("broker-1 went on; broker-1 ended after it was mended; ")


def test_nodes_that_lose_power_lose_it_together_and_a_torn_tail_is_replayed(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(
            play({"cut_power": ["broker-1", "broker-2"], "torn": True}), time_limit_s=20
        )
        (call,) = b.cluster.calls
        performed = b.performed()
    assert call.startswith("cut_power broker-1, broker-2 ")
    assert performed[0]["seed"] == int(call.split()[-1])


def test_a_cluster_that_does_not_recover_is_a_shortfall_that_says_what_is_missing(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"kill": "broker-3"}), time_limit_s=20)
        b.cluster.view = lambda: (_ for _ in ()).throw(HarnessError("nobody"))  # type: ignore[method-assign]
        b.interpreter.heal(limit_s=0.3)
        (shortfall,) = b.interpreter.shortfalls
    assert "not whole 0.3 s after healing: no node that serves clients answers" in shortfall


class Stopwatch:
    """A time that passes as it is waited for."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now_s(self) -> float:
        return self.passed_s

    def sleep(self, seconds: float) -> None:
        self.passed_s += seconds


@pytest.mark.parametrize(
    ("leader", "serving", "waited_s"),
    [(1, {1, 2, 3}, 15.0), (None, {1, 2, 3}, 5.0), (1, {1, 2}, 5.0)],
    ids=["still out", "nobody leads", "its broker is gone"],
)
def test_a_replica_that_is_still_out_though_its_broker_serves_is_given_the_whole_bound_again(
    tmp_path: Path, leader: int | None, serving: set[int], waited_s: float
) -> None:
    with bench(tmp_path) as b:
        partition = PartitionView(leader=leader, isr=(1, 2), replicas=(1, 2, 3))
        b.cluster.view = lambda: ClusterView(  # type: ignore[method-assign]
            time_ns=0,
            brokers=frozenset(serving),
            serving=frozenset(serving),
            partitions={"m-0": partition},
        )
        b.observer.next_look(timeout_s=10)
        watch = Stopwatch()
        waiting = replace(b.interpreter, time=watch)
        assert not waiting.heal(limit_s=5.0)
    assert waited_s <= watch.passed_s < waited_s + 1.0
    assert (
        "m-0 has leader" in waiting.shortfalls[0] or "broker-3 is fenced" in waiting.shortfalls[0]
    )


def test_a_fault_that_is_mended_and_overtaken_by_the_next_one_is_over(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"pause": "broker-1"}), time_limit_s=20)
        # Nobody looks between the two steps: it is killed before it was seen to be back.
        for act in (Resume(target=B1), Kill(target=B1)):
            b.performer.perform(act, B1.nodes, now_s=1.0)
        assert b.performer.open_labels == ("kill broker-1",)
        paused, killed = b.faults().to_pylist()
    assert paused["heal_evidence"] == "mended; kill came before it was seen to be back"
    assert killed["end_ns"] is None


def test_a_node_that_does_not_start_again_ends_the_play_with_its_name(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.cluster.deaf_to_start.add(NODES[1])
        steps = play({"kill": "broker-1"}, {"start": "broker-1"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert "broker-1 does not run after start" in b.interpreter.shortfalls[0]


def test_a_node_that_dies_by_itself_is_told_from_one_that_we_killed(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"kill": "broker-1"}), time_limit_s=20)
        b.cluster.states[NODES[2]] = NodeState.DOWN
        assert b.performer.died_by_themselves() == (NODES[2],)


def test_a_hardship_ends_with_what_its_heal_showed_also_if_the_node_died_under_it(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        steps = play({"skew": "broker-1", "jump": "-60s"}, {"throttle": "broker-1", "cpu": "10%"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.cluster.states[NODES[1]] = NodeState.DOWN
        assert b.performer.died_by_themselves() == (NODES[1],)
        b.interpreter.heal(limit_s=10)
        assert b.cluster.calls == [
            "skew broker-1 -60",
            "throttle broker-1 0.1",
            "unskew broker-1",
            "unthrottle broker-1",
            "start broker-1",
        ]
        skewed, throttled = b.faults().to_pylist()
    assert skewed["evidence"] == "broker-1: wrong"
    assert skewed["heal_evidence"] == "broker-1: right; runs, it takes part"
    assert throttled["heal_evidence"] == "broker-1: free; runs, it takes part"


def test_a_hold_is_a_fault_from_its_first_frame_to_its_release(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.wire.matched["join"] = 0
        laying = b.wire.add
        b.wire.add = lambda rule: (laying(rule), b.wire.matched.update({rule.name: 2}))  # type: ignore[assignment,method-assign]
        steps = play(
            {"hold": {"as": "join", "api": "AlterPartition", "from": "leader of t-0"}},
            {"await": {"held": {"join": 2}}},
            {"release": "join"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert b.performed()[0]["hold"] == {
            "as": "join",
            "api": "AlterPartition",
            "from": "broker-1",
        }
        (fault,) = b.faults().to_pylist()
    assert (fault["fault"], fault["targets"]) == ("hold", ["broker-1"])
    assert fault["evidence"] == "first of join"
    assert fault["heal_evidence"] == "2 held frames delivered"


def test_a_rule_that_concerned_nothing_has_no_effect_and_its_await_says_so(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"hold": {"as": "join", "api": "AlterPartition"}},
            {"await": {"held": "join"}, "within": "200ms"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.interpreter.heal(limit_s=10)
        (shortfall,) = b.interpreter.shortfalls
        assert "the rule concerned 0 frames" in shortfall
        assert b.wire.calls == ["release join"]
        (fault,) = b.faults().to_pylist()
    assert fault["effect_ns"] is None
    assert fault["end_ns"] is not None


def test_a_watch_breaks_nothing_and_can_be_awaited(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play({"watch": {"as": "asked", "api": "AlterPartition"}})
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.wire.matched["asked"] = 3
        b.interpreter.perform_play(
            play({"watch": {"as": "asked"}}, {"await": {"seen": {"asked": 3}}})[1:], time_limit_s=20
        )
        assert b.interpreter.shortfalls == []
        assert b.faults().num_rows == 0


def test_a_partition_is_proven_by_probes_and_heals_what_no_other_one_cuts(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"partition": {"as": "one", "isolate": "broker-1"}},
            {"partition": {"as": "two", "groups": ["broker-1", "controllers"]}},
            {"heal": "one"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        assert b.wire.blocked == {(NODES[1], NODES[0]), (NODES[0], NODES[1])}
        b.interpreter.heal(limit_s=10)
        assert b.wire.blocked == set()
        rows = b.faults().to_pylist()
    assert [row["targets"] for row in rows] == [["broker-1"], ["broker-1", "controller-1"]]
    assert "no answer over 5 links" in rows[0]["evidence"]
    assert rows[0]["heal_evidence"] == "4 links answer again"
    assert all(row["end_ns"] is not None for row in rows)


def test_a_partition_through_which_a_probe_comes_is_no_fault_and_ends_the_play(
    tmp_path: Path,
) -> None:
    with bench(tmp_path) as b:
        b.wire.leaky.add((NODES[2], NODES[1]))
        b.interpreter.perform_play(play({"partition": {"isolate": "broker-1"}}), time_limit_s=20)
        (shortfall,) = b.interpreter.shortfalls
        assert "broker-2 → broker-1 still answers" in shortfall
        (fault,) = b.faults().to_pylist()
    assert fault["effect_ns"] is None


def test_a_node_that_does_not_listen_yet_keeps_no_partition_from_healing(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {"kill": "broker-2"},
            {"partition": {"as": "one", "isolate": "broker-1"}},
            {"start": "broker-2"},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        b.wire.deaf.add(NODES[2])
        b.interpreter.perform_play(
            (*play({"partition": {"as": "one", "isolate": "broker-1"}}, {"heal": "one"})[1:],),
            time_limit_s=20,
        )
        assert b.interpreter.shortfalls == []
        (row,) = (row for row in b.faults().to_pylist() if row["fault"] == "partition")
    assert row["heal_evidence"] == "4 links answer again"


@pytest.mark.parametrize(("silent_count", "heals"), [(1, True), (1 << 30, False)])
def test_a_link_whose_probe_is_cut_off_is_probed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_count: int, *, heals: bool
) -> None:
    """A node that takes notice of what it missed closes its connections."""
    monkeypatch.setattr(cutting, "_HEAL_PROBE_S", 0.3)
    probe, silent = FakeWire.probe, iter(range(silent_count))

    def cut_off(wire: FakeWire, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        answered = probe(wire, source, target, timeout_s=timeout_s)
        return answered and next(silent, None) is None

    monkeypatch.setattr(FakeWire, "probe", cut_off)
    with bench(tmp_path) as b:
        steps = play({"partition": {"as": "one", "isolate": "broker-1"}}, {"heal": "one"})
        b.interpreter.perform_play(steps, time_limit_s=20)
        told = b.interpreter.shortfalls
    assert (told == []) is heals
    assert heals or "broker-1 is silent" in told[0]


def test_a_rule_that_the_wire_refuses_is_not_there_to_be_lifted(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.wire.refuses = "no link has controller-1 as its source"
        steps = play({"drop": {"as": "lost", "from": "controller-1"}})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert "no link has controller-1 as its source" in b.interpreter.shortfalls[0]
        assert b.network.open_labels == ()
        assert b.interpreter.heal(limit_s=10)
        assert b.wire.calls == []


def test_what_the_proxy_cut_by_itself_is_said(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        assert b.network.misread() == []
        b.wire.broken = ("1.000 s: a", "2.000 s: broker-1 → controller-1, connection 7, cut: x")
        (words,) = b.network.misread()
    assert words.startswith("the proxy cut 2 connections that it cannot read; at 2.000 s: broker-1")


def test_loops_and_choices_are_drawn_from_the_seed_and_written_down_flat(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        steps = play(
            {
                "repeat": 3,
                "steps": [
                    {"choose": [[{"kill": "broker-1"}], [{"kill": "broker-2"}]]},
                    {"heal": "all"},
                ],
            }
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert b.interpreter.shortfalls == []
        kills = [call for call in b.cluster.calls if call.startswith("kill")]
        assert len(kills) == 3
        assert len(b.performed()) == 6
    assert parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)


@pytest.mark.parametrize(
    "block",
    [
        {"repeat": 2, "steps": [{"kill": "broker-1"}, {"start": "broker-1"}]},
        {"choose": [[{"kill": "broker-1"}]]},
    ],
)
def test_a_loop_or_a_choice_begins_not_before_its_time(
    tmp_path: Path, block: dict[str, object]
) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(play({"at": "700ms"} | block), time_limit_s=20)
        assert b.interpreter.shortfalls == []
        performed = yaml.safe_load((tmp_path / "play.yaml").read_text())
    killed_at = next(step["at"] for step in performed if "kill" in step)
    assert float(killed_at.removesuffix("s")) >= 0.7


def test_a_step_inside_a_loop_is_named_by_its_place(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.cluster.deaf_to_start.add(NODES[1])
        steps = play(
            {"wait": "0s"},
            {"repeat": 2, "steps": [{"kill": "broker-1"}, {"start": "broker-1"}]},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert "step 2.2 of 2" in b.interpreter.shortfalls[0]


def test_without_a_wire_a_hold_ends_the_play_in_words(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        played = PerformedPlay(tmp_path / "other.yaml")
        b.interpreter.network = network_of(b.cluster, None, journal=b.journal, played=played)
        b.interpreter.perform_play(play({"hold": {"as": "join"}}), time_limit_s=20)
        assert "this run has no proxy" in b.interpreter.shortfalls[0]


@pytest.mark.parametrize("wired", [True, False], ids=["wired", "no wire"])
def test_packets_are_dropped_where_the_play_says_so_or_there_is_no_proxy(
    tmp_path: Path, *, wired: bool
) -> None:
    with bench(tmp_path) as b:
        cluster = PacketCluster()
        b.interpreter.network = network_of(
            cluster,
            b.wire if wired else None,
            journal=b.journal,
            played=b.interpreter.played,
        )
        by = {"by": "packets"} if wired else {}
        steps = play({"partition": {"as": "p", "isolate": "broker-1", **by}})
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert cluster.dropped["p"]
        assert b.performed()[0]["partition"]["by"] == "packets"
        assert b.wire.blocked == set()
        steps = play(
            {"bandwidth": {"as": "b", "of": "broker-2", "rate": "2Mbit"}},
            {"bandwidth": {"as": "c", "of": "broker-2", "rate": "1Mbit"}},
        )
        b.interpreter.perform_play(steps, time_limit_s=20)
        assert "broker-2 already has a bandwidth limit" in b.interpreter.shortfalls[0]
        b.interpreter.heal(limit_s=10)
        assert (cluster.dropped, cluster.rates) == ({}, {})
        cut, bound = b.faults().to_pylist()
        assert "no answer over" in cut["evidence"]
        assert "packets were dropped" in cut["heal_evidence"]
        assert bound["evidence"] == "broker-2 sends 2 Mbit/s, measured"
        assert bound["end_ns"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_a_mix_performed_can_be_read_back_as_a_play(tmp_path: Path, seed: int) -> None:
    spec = MixSpec(
        faults=("kill", "pause", "restart", "wipe", "partition", "delay"),
        gap_s=(0.0, 0.1),
        duration_s=(0.1, 0.3),
    )
    with bench(tmp_path) as b:
        perform_mix(b.interpreter, Mix(spec, random.Random(seed), ("t-0",)), time_limit_s=2)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        assert len(b.cluster.calls) > 4
    assert parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)


@pytest.mark.slow
def test_a_drawn_delay_that_meets_no_frame_is_written_down_and_no_shortfall(tmp_path: Path) -> None:
    spec = MixSpec(
        faults=("delay", "restart"), rounds=True, gap_s=(0.0, 0.1), duration_s=(0.1, 0.1)
    )
    with bench(tmp_path) as b:
        perform_mix(b.interpreter, Mix(spec, random.Random(1), ("t-0",)), time_limit_s=2)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        rows = b.faults().to_pylist()
    assert {row["effect_ns"] is None for row in rows if row["kind"] == "delay"} == {True}
    assert {row["fault"] for row in rows if row["kind"] == "restart"} == {"stop"}
    assert {row["kind"] for row in rows} == {"delay", "restart"}


def test_a_drawn_bound_that_an_idle_node_never_reaches_is_lifted_and_no_shortfall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def idle(cluster: FakeCluster, node: NodeName, share: float) -> str:
        cluster.calls.append(f"throttle {node} {share:g}")
        raise HarnessError(f"{node}: it was not held back")

    monkeypatch.setattr(FakeCluster, "throttle_node", idle)
    spec = MixSpec(faults=("throttle",), gap_s=(0.0, 0.0), duration_s=(0.1, 0.1))
    with bench(tmp_path) as b:
        perform_mix(b.interpreter, Mix(spec, random.Random(1), ("t-0",)), time_limit_s=1)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        begun = [call for call in b.cluster.calls if call.startswith("throttle")]
        assert len(begun) > 1
        assert sum(call.startswith("unthrottle") for call in b.cluster.calls) == len(begun)
        rows = b.faults().to_pylist()
    assert all(row["effect_ns"] is None and row["end_ns"] is not None for row in rows)


def test_a_replayed_delay_draws_what_the_performed_one_drew(tmp_path: Path) -> None:
    with bench(tmp_path) as b:
        b.interpreter.perform_play(
            play({"delay": {"as": "late", "by": ["5ms", "40ms"]}}), time_limit_s=20
        )
        drawn = b.wire.rules["late"].action
    (performed,) = yaml.safe_load((tmp_path / "play.yaml").read_text())
    (step,) = parse_play([performed], STAGE)
    assert isinstance(step, Lay)
    assert isinstance(drawn, Delay)
    assert drawn.seed is not None
    assert step.action == drawn


def test_a_mix_restarts_who_does_not_come_back_and_says_so(tmp_path: Path) -> None:
    spec = MixSpec(faults=("kill",), gap_s=(60.0, 60.0))
    with bench(tmp_path) as b:
        b.cluster.fenced.add(NodeName("broker-2"))
        mix = Mix(spec, random.Random(1), ("t-0",))
        perform_mix(b.interpreter, mix, time_limit_s=0.9, recovery_s=0.5)
        assert b.cluster.calls == ["kill broker-2", "start broker-2"]
        (shortfall,) = b.interpreter.shortfalls
        assert shortfall.startswith(
            "not whole 0.5 s after a fault was healed: broker-2 takes no part"
        )


def test_a_window_of_a_mix_is_opened_struck_and_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("move_leader", "create_topic", "reassign"):
        monkeypatch.setattr(FakeCluster, name, lambda *_, **__: "done", raising=False)
    spec = MixSpec(
        faults=("window",), gap_s=(0.0, 0.1), down={"broker": 2}, windows=("BrokerHeartbeat",)
    )
    with bench(tmp_path) as b, RowJournal(b.run.raw, "windows") as journal:
        b.interpreter.windows = WindowBook(journal, Clock.start())
        b.interpreter.on_tick = lambda _now_s, _now: b.wire.matched.update(
            dict.fromkeys(b.wire.rules, 1)
        )
        mix = Mix(spec, random.Random(5), ("t-0",), streams=lambda name: random.Random(f"9{name}"))
        perform_mix(b.interpreter, mix, time_limit_s=6)
        b.interpreter.heal(limit_s=10)
        assert b.interpreter.shortfalls == []
        rows = {row["index"]: row for row in journal_lines(b.run.raw / "windows.jsonl")}
        assert not [name for name in b.wire.rules if name.startswith("mix")]
        assert set(b.cluster.states.values()) == {NodeState.RUNNING}
    assert rows
    assert {str(row["kind"]).split()[0] for row in rows.values()} == {"BrokerHeartbeat"}
    assert all("end_ns" in row for row in rows.values())
    struck = [row for row in rows.values() if row["struck"]]
    assert struck
    for row in struck:
        assert row["held_ns"] == 1
    assert parse_play(yaml.safe_load((tmp_path / "play.yaml").read_text()), STAGE)
