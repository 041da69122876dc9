"""What ZooKeeper's answers, and the want of them, say of an operation on a znode."""

from dataclasses import dataclass
from typing import Any

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import (
    BadVersionError,
    ConnectionClosedError,
    ConnectionLoss,
    NodeExistsError,
    NoNodeError,
    RolledBackError,
    SessionExpiredError,
)
from kazoo.protocol.states import ZnodeStat

from fencepost.workloads.clients.znode_session import data_of, end_of
from fencepost.workloads.generators.znodes import ZnodeF, ZnodeIntent

STAT = ZnodeStat(7, 9, 0, 0, 2, 0, 0, 0, 1, 0, 7)
TOLD = {"outcome": "ok", "life": 7, "version": 2, "zxid": 9}


@dataclass(frozen=True, slots=True)
class Answer:
    content: Any

    def get(self, *, block: bool) -> Any:
        assert not block, "a callback never waits"
        if isinstance(self.content, BaseException):
            raise self.content
        return self.content


@pytest.mark.parametrize(
    ("f", "content", "row"),
    [
        (ZnodeF.CREATE, ("/k", STAT), TOLD),
        (ZnodeF.SET, STAT, TOLD),
        (ZnodeF.READ, (b"5", STAT), TOLD | {"value": 5}),
        (ZnodeF.DELETE, [STAT, True], TOLD | {"version": 1}),
        (ZnodeF.READ, NoNodeError(), {"outcome": "ok"}),
        (ZnodeF.SET, NoNodeError(), {"outcome": "fail"}),
        (ZnodeF.CAS, BadVersionError(), {"outcome": "fail"}),
        (ZnodeF.CREATE, NodeExistsError(), {"outcome": "fail"}),
        (ZnodeF.DELETE, [BadVersionError(), RolledBackError()], {"outcome": "fail"}),
        (ZnodeF.CREATE, NoNodeError(), {"outcome": "fail", "error": "NONODE"}),
        (ZnodeF.SET, ConnectionLoss(), {"outcome": "info", "error": "CONNECTIONLOSS"}),
        (ZnodeF.SET, SessionExpiredError(), {"outcome": "info", "error": "SESSIONEXPIRED"}),
        (ZnodeF.SET, ConnectionClosedError(), {"outcome": "info"}),
        (ZnodeF.SET, RuntimeError("xids do not match"), {"outcome": "info"}),
        (ZnodeF.SYNC_READ, ConnectionLoss(), {"outcome": "fail", "error": "CONNECTIONLOSS"}),
    ],
)
def test_an_answer_says_what_became_of_an_operation(
    f: ZnodeF, content: Any, row: dict[str, Any]
) -> None:
    found = end_of(ZnodeIntent(f=f, key="/k"), Answer(content))
    assert row.items() <= found.items()
    assert found["outcome"] != "info" or "error" in found


def test_kazoo_tells_the_server_where_the_session_looks_for_it() -> None:
    client = KazooClient()
    assert client._connection._socket is None


def test_large_data_is_read_back_as_the_value_that_was_written() -> None:
    data = data_of(12, size_min=50_000)
    assert len(data) == 50_000
    read = end_of(ZnodeIntent(f=ZnodeF.READ, key="/k"), Answer((data, STAT)))
    assert read["value"] == 12
    assert data_of(12, size_min=1) == b"12"
