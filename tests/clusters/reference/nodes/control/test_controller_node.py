"""The whole controller: elected, active, deposed, restarted, stopped."""

from functools import partial
from typing import Any

import pytest
from desk import registration
from stage import CLOSED, CLUSTER, Stage

from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS, Configuration, S
from fencepost.clusters.reference.nodes.controller import ControllerNode
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.client import MetadataRequest
from fencepost.clusters.reference.nodes.messages.control import (
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    NewTopic,
)
from fencepost.clusters.reference.nodes.rules import Rules

ALL = (1001, 1002, 1003)


class Assembly(Stage):
    """Controllers alone: a client stands for each broker."""

    def __init__(self, *ids: int, rules: Rules | None = None, **settings: Any) -> None:
        super().__init__()
        for one in ids:
            configuration = Configuration(
                node_id=one, is_controller=True, voters=ids, cluster_id=CLUSTER, **settings
            )
            self.add(one, partial(ControllerNode, configuration, rules or Rules()))
            self.start(one)

    def active(self) -> int:
        """Who was the last to become active."""
        found: int = self.noted("active")[-1][0]
        return found

    def image(self, node_id: int) -> MetadataImage:
        found: MetadataImage = self.nodes[node_id]._replayer.image
        return found

    def isolate(self, node_id: int) -> None:
        """Let no other controller hear of this one."""
        self.cut([node_id], [one for one in self.ids if one != node_id])


def _topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(0, (NewTopic(name, 1, 1),), S)


def _broker(assembly: Assembly, broker_id: int) -> Any:
    """Register and unfence a broker; its last answer."""
    active = assembly.active()
    answer = assembly.ask(active, registration(broker_id))
    assert answer.error == Error.NONE
    assembly.run(100 * MS)
    answer = _heartbeat(assembly, broker_id, answer.broker_epoch)
    assembly.run(100 * MS)
    return answer


def _heartbeat(assembly: Assembly, broker_id: int, epoch: int) -> Any:
    active = assembly.active()
    offset = assembly.image(active).offset
    request = BrokerHeartbeatRequest(0, broker_id, epoch, offset, BrokerState.RUNNING, 3)
    return assembly.ask(active, request)


@pytest.mark.parametrize("ids", [ALL[:1], ALL], ids=["one", "three"])
def test_a_new_cluster_has_an_active_controller_and_its_level(ids: tuple[int, ...]) -> None:
    assembly = Assembly(*ids, level=2)
    assembly.run(5 * S)
    active = assembly.active()
    assert assembly.image(active).features == {"metadata.version": 2}
    assert _broker(assembly, 1).next_state == BrokerState.RUNNING


def test_who_is_not_active_says_who_leads() -> None:
    assembly = Assembly(*ALL)
    assembly.run(5 * S)
    active = assembly.active()
    other = next(one for one in ALL if one != active)
    answer = assembly.ask(other, registration(1))
    assert (answer.error, answer.active_controller_id) == (Error.NOT_CONTROLLER, active)
    topics = assembly.ask(other, _topic("t")).topics
    assert topics == (("t", -1, Error.NOT_CONTROLLER, "NOT_CONTROLLER"),)


def test_a_controller_closes_what_only_brokers_are_asked() -> None:
    assembly = Assembly(1001)
    assembly.run(S)
    assert assembly.ask(1001, MetadataRequest(6, None)) == CLOSED


def test_every_controller_holds_what_was_decided() -> None:
    assembly = Assembly(*ALL, level=2)
    assembly.run(5 * S)
    _broker(assembly, 1)
    assert assembly.ask(assembly.active(), _topic("t")).topics[0][2] == Error.NONE
    assembly.run(2 * S)
    images = [assembly.image(one).records() for one in ALL]
    assert images[0] == images[1] == images[2]
    assert "t" in assembly.image(ALL[0]).topics


@pytest.mark.rule("answer_after_commit")
def test_a_write_that_no_majority_has_is_not_answered_and_is_closed_with_the_leadership() -> None:
    assembly = Assembly(*ALL, level=2)
    assembly.run(5 * S)
    _broker(assembly, 1)
    old, answered = assembly.active(), dict(assembly.answers)
    assembly.isolate(old)
    lost, waits = (assembly.send(old, _topic(name)) for name in ("lost", "waits"))
    assembly.run(100 * MS)
    assert assembly.answers == answered
    assembly.run(10 * S)
    assert assembly.active() != old
    # The one may hold or not; the other was never tried.
    assert assembly.answers[lost] == CLOSED
    refused = assembly.answers[waits].topics
    assert refused == (("waits", -1, Error.NOT_CONTROLLER, "NOT_CONTROLLER"),)
    assembly.blocked.clear()
    assembly.run(5 * S)
    assert "lost" not in assembly.image(assembly.active()).topics


def test_without_answer_after_commit_a_write_is_answered_that_is_lost() -> None:
    assembly = Assembly(*ALL, level=2, rules=Rules().without("answer_after_commit"))
    assembly.run(5 * S)
    _broker(assembly, 1)
    old = assembly.active()
    assembly.isolate(old)
    assert assembly.ask(old, _topic("lost")).topics[0][2] == Error.NONE
    assembly.run(10 * S)
    assembly.blocked.clear()
    assembly.run(5 * S)
    assert "lost" not in assembly.image(assembly.active()).topics


def test_a_controller_that_was_killed_comes_back_with_all_that_was_decided() -> None:
    assembly = Assembly(1001, level=2)
    assembly.run(S)
    epoch = _broker_epoch(assembly)
    assembly.ask(1001, _topic("t"))
    assembly.kill(1001)
    assembly.start(1001)
    assembly.run(S)
    image = assembly.image(1001)
    assert "t" in image.topics
    assert image.brokers[1].broker_epoch == epoch
    assert _heartbeat(assembly, 1, epoch).next_state == BrokerState.RUNNING


def _broker_epoch(assembly: Assembly) -> int:
    _broker(assembly, 1)
    return assembly.image(assembly.active()).brokers[1].broker_epoch


def test_a_controller_that_is_told_to_stop_hands_over_and_ends_cleanly() -> None:
    assembly = Assembly(*ALL, level=2)
    assembly.run(5 * S)
    old = assembly.active()
    assembly.stop(old)
    assert assembly.until(lambda: assembly.exits, limit_ns=10 * MS) == {old: ""}
    # Sooner than anybody would have missed it.
    assembly.run(1_500 * MS)
    assert assembly.active() != old


def test_snapshots_are_taken_and_a_controller_that_was_away_catches_up_by_one() -> None:
    assembly = Assembly(*ALL, level=2, metadata_snapshot_records=20)
    assembly.run(5 * S)
    _broker(assembly, 1)
    away = next(one for one in ALL if one != assembly.active())
    assembly.kill(away)
    for number in range(30):
        assert assembly.ask(assembly.active(), _topic(f"t{number}")).topics[0][2] == Error.NONE
    active = assembly.active()
    assert assembly.nodes[active]._voter.log.start > 20
    assembly.start(away)
    assembly.run(3 * S)
    assert assembly.image(away).records() == assembly.image(active).records()


def test_an_idle_controller_appends_noops_and_nothing_else() -> None:
    assembly = Assembly(1001, noop_interval_ns=500 * MS)
    assembly.run(S)
    end = assembly.image(1001).offset
    assembly.run(10 * S)
    assert 15 <= assembly.image(1001).offset - end <= 20
    assert assembly.image(1001).brokers == {}


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (None, "not formatted"),
        (
            MetaProperties(cluster_id=CLUSTER, node_id=1001, directory_id=1, mode="legacy"),
            "kip.500.mode",
        ),
        (MetaProperties(cluster_id=CLUSTER, node_id=1002, directory_id=1), "node 1001"),
        (MetaProperties(cluster_id="another", node_id=1001, directory_id=1), "cluster"),
    ],
    ids=["unformatted", "mode", "node", "cluster"],
)
def test_k11_a_controller_starts_on_no_disk_but_its_own(
    found: MetaProperties | None, words: str
) -> None:
    assembly = Assembly(1001)
    assembly.kill(1001)
    assembly.disk(1001).write(META_PROPERTIES, found)
    assembly.start(1001)
    assert words in assembly.until(lambda: assembly.exits)[1001]


def test_k11_without_format_required_a_wiped_controller_starts() -> None:
    assembly = Assembly(1001, rules=Rules().without("format_required"))
    assembly.kill(1001)
    assembly.disk(1001).format({})
    assembly.start(1001)
    assert assembly.exits == {}
    assembly.run(S)
    assert assembly.active() == 1001
