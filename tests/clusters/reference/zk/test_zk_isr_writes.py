"""ISRs that leaders write to ZooKeeper themselves."""

from typing import Any

import pytest
from isr_asker import Asker

from fencepost.clusters.node_port.zookeeper import (
    Create,
    GetData,
    SessionEvent,
    SessionState,
    SetData,
    Stat,
    ZkError,
    ZkOutcome,
    ZkResponse,
)
from fencepost.clusters.reference.zk.isr_changes import IsrWrites
from fencepost.clusters.reference.zk.znodes import PartitionStateInfo, decoded_isr_change

SECOND = 1_000_000_000
PATH = "/brokers/topics/t/partitions/0/state"


class Writer(Asker):
    """The same broker with a session, below the new inter-broker protocol."""

    def __init__(self, **rules: bool) -> None:
        super().__init__(**rules)
        self.writes = IsrWrites(self.situation)
        self.connect()

    def connect(self, state: SessionState = SessionState.CONNECTED) -> None:
        self.situation.zookeeper.session(0, SessionEvent(-1, state, 1), self.effects)

    def write(self, number: int = 0, *, now: int = 0) -> None:
        self.writes.propose(now, self.leaders[number], (1, 2), self.effects)

    def reply(self, error: int = 0, *, version: int = 0, data: bytes = b"", now: int = 1) -> None:
        """Answer the last request."""
        stat = Stat(1, 1, version, 0)
        outcome = ZkOutcome(error, data=data, stat=None if error else stat)
        response = ZkResponse(self.sent()[-1].correlation, error, 1, (outcome,))
        self.situation.zookeeper.answered(now, response, self.effects)

    def asked(self) -> list[Any]:
        return [request.operations[0] for request in self.sent()]


@pytest.mark.rule("state_written_by_version")
def test_a_state_is_written_over_the_version_that_the_leader_knows() -> None:
    writer = Writer()
    writer.write()
    (asked,) = writer.asked()
    assert (asked.path, asked.version) == (PATH, 0)
    assert PartitionStateInfo.decoded(asked.data) == PartitionStateInfo(1, 1, 3, (1, 2))
    writer.reply(version=1)
    leader = writer.leaders[0]
    assert (leader.isr, leader.partition_epoch, leader.proposed) == ((1, 2), 1, None)


def test_without_its_rule_a_state_is_overwritten_whatever_it_is() -> None:
    writer = Writer(state_written_by_version=False)
    writer.write()
    assert writer.asked()[0].version == -1


def test_a_version_that_its_own_lost_try_made_is_taken() -> None:
    writer = Writer()
    writer.write()
    write = writer.asked()[0]
    writer.reply(ZkError.CONNECTION_LOSS)
    writer.reply(ZkError.BAD_VERSION)
    assert writer.asked()[-1] == GetData(PATH)
    writer.reply(version=1, data=write.data)
    assert (writer.leaders[0].isr, writer.leaders[0].partition_epoch) == ((1, 2), 1)


def test_a_version_that_another_made_ends_it_until_leader_and_isr() -> None:
    writer = Writer()
    writer.write()
    writer.reply(ZkError.BAD_VERSION)
    writer.reply(version=1, data=PartitionStateInfo(2, 2, 4, (2,)).encoded())
    leader = writer.leaders[0]
    assert (leader.isr, leader.proposed) == ((1,), (1, 2))
    assert len(writer.asked()) == 2


@pytest.mark.parametrize("bad_version_first", [False, True])
def test_a_write_is_repeated_in_the_next_session(*, bad_version_first: bool) -> None:
    writer = Writer()
    writer.write()
    if bad_version_first:
        writer.reply(ZkError.BAD_VERSION)
    writer.connect(SessionState.EXPIRED)
    writer.connect()
    assert isinstance(writer.asked()[-1], SetData)
    writer.reply(version=1)
    assert writer.leaders[0].isr == (1, 2)


def test_the_controller_is_told_of_the_first_change_at_once_and_of_the_next_ones_together() -> None:
    writer = Writer()
    writer.write(0)
    writer.reply(version=1)
    create = writer.asked()[-1]
    assert isinstance(create, Create)
    assert create.sequential
    assert decoded_isr_change(create.data) == (("t", 0),)
    writer.write(1, now=SECOND)
    writer.reply(version=1, now=SECOND)
    writer.writes.tick(2 * SECOND, writer.effects)
    assert isinstance(writer.asked()[-1], SetData)
    writer.writes.tick(3 * SECOND, writer.effects)
    assert decoded_isr_change(writer.asked()[-1].data) == (("t", 1),)


def test_a_notification_that_was_lost_with_its_session_is_written_again() -> None:
    writer = Writer()
    writer.write(0)
    writer.reply(version=1)
    writer.connect(SessionState.EXPIRED)
    writer.connect()
    writer.writes.tick(3 * SECOND, writer.effects)
    assert decoded_isr_change(writer.asked()[-1].data) == (("t", 0),)


def test_a_leader_that_is_none_any_more_takes_no_version() -> None:
    writer = Writer()
    writer.write()
    writer.leaders[0].end(writer.effects)
    writer.reply(version=1)
    assert writer.leaders[0].isr == (1,)
