"""Requests: outcomes and errors of single requests, multis, sessions, and what watches are told."""

import pytest

from fencepost.clusters.data_tree.requests import Applied, Asked, applied, decided, read, stat_of
from fencepost.clusters.data_tree.transactions import CloseSessionTxn, CreateSessionTxn
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.node_port.zookeeper import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SetData,
    WatchType,
    Write,
    ZkError,
    ZkOutcome,
)


class Log:
    """A tree with a log of its own, whose sessions 1 and 2 are open."""

    def __init__(self) -> None:
        self.tree = DataTree()
        self.count = 0
        for session in (1, 2):
            self.put(CreateSessionTxn(timeout_ms=1000), session=session)

    def put(self, asked: Asked, *, session: int = 1) -> Applied:
        self.count += 1
        made = decided(self.tree, asked, session=session, cxid=0, zxid=self.count, time_ms=0)
        return applied(self.tree, made)

    def end(self) -> Applied:
        return self.put(CloseSessionTxn(paths=None))

    def show(self, operation: GetData | Exists | GetChildren) -> ZkOutcome:
        return read(self.tree, operation)

    def do(self, *writes: Write, session: int = 1) -> Applied:
        return self.put(writes, session=session)


def test_a_znode_has_the_zxids_that_made_and_changed_it_and_counts_its_versions() -> None:
    log = Log()
    log.do(Create("/a", b"1"))
    log.do(SetData("/a", b"2", 0))
    log.do(SetData("/a", b"3"))
    outcome = log.show(GetData("/a"))
    assert outcome.stat is not None
    assert (outcome.data, outcome.stat.version) == (b"3", 2)
    assert (outcome.stat.czxid, outcome.stat.mzxid) == (3, 5)


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (Create("/a", b""), ZkError.NODE_EXISTS),
        (Create("/x/y", b""), ZkError.NO_NODE),
        (Create("/e/y", b""), ZkError.NO_CHILDREN_FOR_EPHEMERALS),
        (Create("a", b""), ZkError.BAD_ARGUMENTS),
        (Create("/a//b", b""), ZkError.NO_NODE),
        (Create("/a/", b""), ZkError.BAD_ARGUMENTS),
        (SetData("/x", b""), ZkError.NO_NODE),
        (SetData("/a", b"", 7), ZkError.BAD_VERSION),
        (Delete("/x"), ZkError.NO_NODE),
        (Delete("/a", 7), ZkError.BAD_VERSION),
        (Delete("/a"), ZkError.NOT_EMPTY),
        (Delete("/"), ZkError.BAD_ARGUMENTS),
        (Check("/a", 7), ZkError.BAD_VERSION),
    ],
)
def test_a_request_that_cannot_be_granted_is_refused_and_changes_nothing(
    write: Write, error: ZkError
) -> None:
    log = Log()
    log.do(Create("/a", b""))
    log.do(Create("/a/b", b""))
    log.do(Create("/e", b"", ephemeral=True))
    before = {path: stat_of(znode) for path, znode in log.tree.znodes.items()}
    assert log.do(write).error == error
    assert {path: stat_of(znode) for path, znode in log.tree.znodes.items()} == before


def test_sequential_names_count_all_children_that_were_ever_made() -> None:
    log = Log()
    log.do(Create("/q", b""))
    log.do(Create("/q/other", b""))
    log.do(Delete("/q/other"))
    assert log.do(Create("/q/n-", b"", sequential=True)).outcomes[0].path == "/q/n-0000000001"
    log.do(Create("/q/n-0000000002", b""))
    assert log.do(Create("/q/n-", b"", sequential=True)).outcomes[0].path == "/q/n-0000000003"


def test_a_multi_is_carried_out_whole_or_not_at_all_and_says_where_it_failed() -> None:
    log = Log()
    log.do(Create("/a", b"1"))
    refused = log.do(
        SetData("/a", b"2"),
        Create("/a/b", b"", ephemeral=True),
        Delete("/a/b"),
        Check("/a", 7),
        Delete("/a"),
    )
    codes = [one.error for one in refused.outcomes]
    assert (refused.error, codes) == (ZkError.BAD_VERSION, [0, 0, 0, ZkError.BAD_VERSION, -2])
    assert not refused.fired
    outcome = log.show(GetData("/a"))
    assert outcome.stat is not None
    assert (outcome.data, outcome.stat.version, outcome.stat.children_count) == (b"1", 0, 0)
    granted = log.do(Check("/a", 0), Delete("/a"), Create("/a", b"3"))
    assert granted.error == 0
    assert log.show(GetData("/a")).data == b"3"
    assert not log.end().fired


def test_a_multi_that_fails_leaves_ephemeral_znodes_to_their_session() -> None:
    log = Log()
    log.do(Create("/e", b"", ephemeral=True))
    log.do(Delete("/e"), Check("/x"))
    log.do(Create("/f", b"", ephemeral=True), Check("/x"))
    assert log.end().fired == ((WatchType.DELETED, "/e"), (WatchType.CHILDREN, "/"))


def test_the_znodes_of_a_session_end_with_it_and_it_asks_nothing_any_more() -> None:
    log = Log()
    log.do(Create("/a", b""))
    log.do(Create("/a/mine", b"", ephemeral=True))
    log.do(Create("/a/yours", b"", ephemeral=True), session=2)
    ended = log.end()
    assert ended.fired == ((WatchType.DELETED, "/a/mine"), (WatchType.CHILDREN, "/a"))
    assert log.show(GetChildren("/a")).children == ("yours",)
    assert log.do(Create("/b", b"")).error == ZkError.SESSION_EXPIRED
    assert log.end().error == ZkError.SESSION_EXPIRED
    assert log.show(Exists("/b")).error == ZkError.NO_NODE
