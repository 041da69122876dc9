"""The lowest acknowledged offset, and the writes that wait for it: V01, V03, V04, V06."""

from typing import Any

import pytest
from desk import LEASE, Desk

from fencepost.clusters.node_port.effects import CLOSE
from fencepost.clusters.node_port.notes import ACKNOWLEDGED_METADATA, TOLD_LOWEST
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import S
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    NewTopic,
    UpdateFeaturesRequest,
)


def _two(*off: str, level: int = 3, **settings: Any) -> Desk:
    desk = Desk(*off, level=level, **settings)
    desk.brokers(1, 2)
    return desk


def _setting(value: str) -> AlterConfigsRequest:
    return AlterConfigsRequest(0, ((4, "", "retention.ms", value),))


@pytest.mark.rule("lowest_of_all")
def test_v06_the_documents_trace() -> None:
    desk = _two()
    base = desk.image.offset
    desk.catch_up(1, 2)
    # Broker A writes, and fetches the record first.
    assert desk.ask(_setting("5"), source=-9) is None
    assert desk.image.offset == base + 1
    assert desk.heartbeat(1).lowest_acknowledged_offset == base
    assert desk.heartbeat(2).lowest_acknowledged_offset == base + 1


def test_v01_it_is_told_only_where_level_3_is_spoken() -> None:
    desk = _two(level=2)
    assert desk.heartbeat(1).lowest_acknowledged_offset == -1
    desk = _two(level=3)
    assert desk.heartbeat(1, level=2).lowest_acknowledged_offset == -1
    assert desk.heartbeat(1, level=3).lowest_acknowledged_offset > 0


def test_v01_what_a_broker_is_told_is_noted() -> None:
    desk = _two()
    told = desk.heartbeat(1).lowest_acknowledged_offset
    assert desk.notes(TOLD_LOWEST)[-1] == (1, told)


def test_v01_heartbeats_that_overtake_each_other_do_not_take_it_back() -> None:
    desk = _two()
    desk.catch_up(1, 2)
    told = desk.heartbeat(1).lowest_acknowledged_offset
    assert desk.heartbeat(1, offset=3).lowest_acknowledged_offset == told


def test_v01_a_new_controller_tells_none_before_every_unfenced_broker_has_told_its_own() -> None:
    desk = _two()
    desk.catch_up(1, 2)
    told = desk.heartbeat(1).lowest_acknowledged_offset
    desk.depose()
    desk.elect()
    assert desk.heartbeat(1).lowest_acknowledged_offset == -1
    assert desk.heartbeat(2).lowest_acknowledged_offset >= told


def test_without_lowest_of_all_a_broker_is_shown_what_another_does_not_have() -> None:
    desk = _two("lowest_of_all")
    desk.catch_up(1, 2)
    base = desk.image.offset
    desk.ask(_setting("5"))
    assert desk.heartbeat(1).lowest_acknowledged_offset == base + 1


def test_v04_a_fenced_broker_holds_nobody_back_and_comes_back_caught_up() -> None:
    desk = _two()
    desk.catch_up(1, 2)
    desk.heartbeat(2, BrokerState.FENCED)
    old = desk.image.offset
    desk.ask(_setting("5"))
    told = desk.heartbeat(1).lowest_acknowledged_offset
    assert told == desk.image.offset > old
    assert desk.heartbeat(2, offset=old).next_state == BrokerState.FENCED
    assert desk.heartbeat(2, offset=told).next_state == BrokerState.RUNNING
    assert desk.heartbeat(1).lowest_acknowledged_offset >= told


def test_v04_without_lowest_never_back_metadata_that_was_shown_is_hidden_again() -> None:
    desk = _two("lowest_never_back")
    desk.catch_up(1, 2)
    desk.heartbeat(2, BrokerState.FENCED)
    old = desk.image.offset
    desk.ask(_setting("5"))
    told = desk.heartbeat(1).lowest_acknowledged_offset
    assert desk.heartbeat(2, offset=old).next_state == BrokerState.RUNNING
    assert desk.heartbeat(1).lowest_acknowledged_offset < told


def test_v03_a_write_is_answered_once_every_unfenced_broker_has_applied_it() -> None:
    desk = _two()
    assert desk.ask(_setting("5"), source=-9) is None
    end = desk.image.offset
    desk.catch_up(1)
    assert desk.answer_to(-9) is None
    assert desk.notes(ACKNOWLEDGED_METADATA) == []
    desk.catch_up(2)
    assert desk.answer_to(-9).resources == ((4, "", 0, ""),)
    assert desk.notes(ACKNOWLEDGED_METADATA) == [(end, 30, "AlterConfigs : retention.ms=5")]


def test_v03_a_write_that_finds_its_value_waits_for_the_write_that_set_it() -> None:
    desk = _two()
    assert desk.ask(_setting("5"), source=-8) is None
    assert desk.ask(_setting("5"), source=-9) is None
    desk.catch_up(1, 2)
    assert desk.answer_to(-8) is not None
    assert desk.answer_to(-9) is not None


def test_v03_a_broker_that_is_fenced_holds_no_write_back() -> None:
    desk = _two()
    desk.pass_time(LEASE - 1)
    desk.catch_up(1)
    desk.ask(_setting("5"), source=-9)
    desk.catch_up(1)
    assert desk.answer_to(-9) is None
    desk.pass_time(1)
    assert desk.broker(2).fenced
    assert desk.answer_to(-9) is not None


def test_v03_a_write_that_waited_its_time_is_closed() -> None:
    desk = _two("controller_ends_leases", request_timeout_ns=30 * S)
    desk.ask(_setting("5"), source=-9)
    desk.pass_time(30 * S - 1)
    assert desk.answer_to(-9) is None
    desk.pass_time(1)
    assert desk.answer_to(-9) == CLOSE


def test_v03_without_write_waits_a_write_is_answered_that_a_broker_does_not_show() -> None:
    desk = _two("write_waits")
    assert desk.ask(_setting("5"), source=-9) is not None
    assert desk.heartbeat(1).lowest_acknowledged_offset < desk.image.offset


def test_v04_a_raise_of_the_level_promises_nothing_of_who_was_unfenced_before_it() -> None:
    desk = _two(level=2)
    desk.catch_up(1, 2)
    desk.heartbeat(2, BrokerState.FENCED)
    old = desk.image.offset
    desk.ask(_setting("5"))
    desk.catch_up(1)
    # Below level 3 its own registration is all that it must have applied.
    assert desk.heartbeat(2, offset=old).next_state == BrokerState.RUNNING
    desk.ask(UpdateFeaturesRequest(0, (("metadata.version", 3),)))
    assert desk.image.level == 3
    assert desk.heartbeat(1, level=3).lowest_acknowledged_offset <= old


def test_below_level_3_a_write_is_answered_once_it_is_committed() -> None:
    desk = _two(level=2)
    assert desk.ask(_setting("5"), source=-9) is not None


def test_v04_who_is_unfenced_has_every_write_that_a_client_was_told_of() -> None:
    desk = Desk()
    desk.register(1)
    old = desk.image.offset
    desk.commits = False
    desk.ask(_setting("5"), source=-9)
    assert desk.heartbeat(1, offset=old) is None
    desk.commit()
    # Its unfencing is decided: it counts from here on, and does not have the write yet.
    assert desk.answer_to(-9) is None
    desk.commits = True
    desk.commit()
    assert desk.answer_to(-9) is None
    desk.catch_up(1)
    assert desk.answer_to(-9) is not None


def test_a_topic_is_acknowledged_by_its_name() -> None:
    desk = _two()
    desk.ask(CreateTopicsRequest(0, (NewTopic("a", 1, 2), NewTopic("b", 1, 1)), S), source=-9)
    desk.catch_up(1, 2)
    assert desk.notes(ACKNOWLEDGED_METADATA)[-1][1:] == (26, "CreateTopics a, b")
