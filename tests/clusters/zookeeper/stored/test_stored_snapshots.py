"""Trees are made of transactions and snapshots as a server makes them."""

import gzip
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_files import creation, made, setting, snapshot, write_snapshot

from fencepost.clusters.data_tree.transactions import (
    CONTAINER_OWNER,
    TTL_OWNER,
    Acl,
    Change,
    CloseSessionTxn,
    CreateSessionTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    Transaction,
)
from fencepost.clusters.data_tree.tree import DataTree, Znode
from fencepost.clusters.zookeeper.stored.logs import StoredError
from fencepost.clusters.zookeeper.stored.snapshots import newest_tree, read_snapshot

STEPS = st.lists(
    st.tuples(
        st.sampled_from(("create", "ephemeral", "set", "delete", "permit", "open", "close")),
        st.sampled_from(("/a", "/a/x", "/a/y", "/b")),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=30,
)


def history(steps: list[tuple[str, str, int]]) -> list[Transaction]:
    """The transactions of what can be done of these steps, each a zxid."""
    tree, done = DataTree(), []
    for zxid, (step, path, session) in enumerate(steps, 1):
        change = possible(tree, step, path, session)
        if change is not None:
            done.append(made(zxid, change, session=session))
            tree.apply(done[-1])
    return done


def possible(tree: DataTree, step: str, path: str, session: int) -> tuple[str, Change] | None:
    """The change that a leader would propose for a step; None: it would refuse it."""
    parent = tree.znodes.get(path.rpartition("/")[0] or "/")
    there = tree.znodes.get(path)
    open_now = session in tree.sessions
    match step:
        case "create" if parent and not there and not parent.ephemeral_owner:
            return creation(path, nth=parent.cversion + 1)
        case "ephemeral" if open_now and parent and not there and not parent.ephemeral_owner:
            return creation(path, owner=session, nth=parent.cversion + 1)
        case "set" if there:
            return setting(path, b"%d" % there.version, there.version + 1)
        case "delete" if there and not any(one.startswith(f"{path}/") for one in tree.znodes):
            return "delete", DeleteTxn(path=path)
        case "permit" if there:
            acls = (Acl(permissions=there.aversion, scheme="auth", id=""),)
            return "setACL", SetAclTxn(path=path, acls=acls, version=there.aversion + 1)
        case "open" if not open_now:
            return "createSession", CreateSessionTxn(timeout_ms=4000)
        case "close" if open_now:
            owned = tuple(p for p, one in tree.znodes.items() if one.ephemeral_owner == session)
            return "closeSession", CloseSessionTxn(paths=owned)
    return None


def tree_of(*transactions: Transaction) -> DataTree:
    tree = DataTree()
    for one in transactions:
        tree.apply(one)
    return tree


@given(STEPS, st.data())
def test_a_snapshot_that_was_taken_meanwhile_leads_to_the_same_tree(
    steps: list[tuple[str, str, int]], data: st.DataObject
) -> None:
    """Its name has the zxid at its begin; each znode is as it was somewhen up to its end."""
    done = history(steps)
    begin = data.draw(st.integers(0, len(done)))
    end = data.draw(st.integers(begin, len(done)))
    states = [tree_of(*done[:count]) for count in range(begin, end + 1)]
    fuzzy = deepcopy(states[0])
    # A server writes a znode, and then the children that it has at that moment.
    at = 0
    fuzzy.znodes = {}
    for path in ("/", "/a", "/a/x", "/a/y", "/b"):
        at = data.draw(st.integers(at, len(states) - 1))
        if (znode := states[at].znodes.get(path)) is not None:
            fuzzy.znodes[path] = deepcopy(znode)
    restored = DataTree(znodes=fuzzy.znodes, sessions=dict(fuzzy.sessions), zxid=states[0].zxid)
    for one in done[begin:]:
        restored.apply(one)
    whole = tree_of(*done)
    own = {path: znode for path, znode in whole.znodes.items() if "/zookeeper" not in path}
    assert restored.znodes == own
    assert restored.sessions == whole.sessions


@given(STEPS)
def test_a_snapshot_is_read_as_it_was_written(steps: list[tuple[str, str, int]]) -> None:
    tree = tree_of(*history(steps))
    with TemporaryDirectory() as directory:
        assert read_snapshot(write_snapshot(Path(directory), tree)) == tree


def test_what_a_refused_multi_holds_is_not_done() -> None:
    refused = made(2, setting("/a", b"2", 1), ("error", ErrorTxn(error=-103)))
    tree = tree_of(made(1, creation("/a", data=b"1")), refused)
    assert tree.znodes["/a"].data == b"1"
    assert tree.zxid == 2


def test_the_ephemerals_of_a_session_go_with_it_also_where_the_log_does_not_list_them() -> None:
    opened = made(1, ("createSession", CreateSessionTxn(timeout_ms=4000)))
    owned = made(2, creation("/e", owner=7))
    ended = made(3, ("closeSession", CloseSessionTxn(paths=None)))
    assert "/e" in tree_of(opened, owned).znodes
    assert tree_of(opened, owned).sessions == {7: 4000}
    assert "/e" not in tree_of(opened, owned, ended).znodes
    assert tree_of(opened, owned, ended).sessions == {}
    assert tree_of(opened, owned, ended).znodes["/"].pzxid == 3


def test_marks_of_containers_and_of_times_to_live_are_no_sessions() -> None:
    owners = (0, CONTAINER_OWNER, TTL_OWNER | 60_000, 0x1000_0000_0000_0007)
    sessions = [Znode(ephemeral_owner=owner).session for owner in owners]
    assert sessions == [None, None, None, owners[-1]]


SOME = tree_of(
    made(1, ("createSession", CreateSessionTxn(timeout_ms=4000))), made(2, creation("/a"))
)


@pytest.mark.parametrize("kind", ["", ".gz", ".snappy"])
def test_a_snapshot_may_be_compressed(tmp_path: Path, kind: str) -> None:
    content = snapshot(SOME)
    block = pa.compress(content, codec="snappy", asbytes=True)
    framed = b"\x82SNAPPY\0" + bytes(8) + len(block).to_bytes(4) + block
    packed = {"": content, ".gz": gzip.compress(content), ".snappy": framed}[kind]
    path = tmp_path / f"snapshot.2{kind}"
    path.write_bytes(packed)
    assert read_snapshot(path) == SOME
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(StoredError, match=rf"snapshot\.2{kind}: "):
        read_snapshot(path)


def test_a_snapshot_that_was_cut_or_changed_is_none_and_the_one_before_it_counts(
    tmp_path: Path,
) -> None:
    home = tmp_path / "version-2"
    assert newest_tree(home) is None
    before = tree_of(made(1, creation("/b")))
    write_snapshot(tmp_path, before)
    path = write_snapshot(tmp_path, SOME)
    content = path.read_bytes()
    assert newest_tree(home) == SOME
    # What follows are the digest and the last zxid, with a seal each.
    sealed = len(content) - 20 - 8 - 2 * 13
    for cut in range(sealed):
        path.write_bytes(content[:cut])
        assert newest_tree(home) == before
        path.write_bytes(content[:cut] + bytes([content[cut] ^ 0x80]) + content[cut + 1 :])
        assert newest_tree(home) == before
