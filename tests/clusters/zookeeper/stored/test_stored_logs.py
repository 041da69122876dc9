"""Transactions are read from logs whole, torn or damaged."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_files import TYPES, creation, entry, log, made, setting, write_log

from fencepost.clusters.data_tree.transactions import (
    CONTAINER_OWNER,
    TTL_OWNER,
    Acl,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
    Transaction,
)
from fencepost.clusters.protocol.jute import JuteError
from fencepost.clusters.protocol.zookeeper_transactions import decoded_transaction
from fencepost.clusters.zookeeper.stored.logs import StoredError, log_files, transactions_in

INT32 = st.integers(-(1 << 31), (1 << 31) - 1)
INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
SESSION = 0x100_0000_0007
PATHS = st.text(max_size=6).map("/".__add__)
DATA = st.none() | st.binary(max_size=6)
ACLS = st.lists(st.builds(Acl, permissions=INT32, scheme=st.text(max_size=3), id=PATHS)).map(tuple)
TTLS = st.integers(0, 1 << 39).map(TTL_OWNER.__or__)


def creations(owners: st.SearchStrategy[int]) -> st.SearchStrategy[CreateTxn]:
    return st.builds(
        CreateTxn, path=PATHS, data=DATA, acls=ACLS, ephemeral_owner=owners, parent_cversion=INT32
    )


def named(name: str, changes: st.SearchStrategy[Change]) -> st.SearchStrategy[tuple[str, Change]]:
    return st.tuples(st.just(name), changes)


IN_MULTI = st.one_of(
    named("error", st.builds(ErrorTxn, error=INT32)),
    named("create", creations(st.sampled_from((0, SESSION)))),
    named("create2", creations(st.sampled_from((0, SESSION)))),
    named("createContainer", creations(st.just(CONTAINER_OWNER))),
    named("createTTL", creations(TTLS)),
    named("delete", st.builds(DeleteTxn, path=PATHS)),
    named("deleteContainer", st.builds(DeleteTxn, path=PATHS)),
    named("setData", st.builds(SetDataTxn, path=PATHS, data=DATA, version=INT32)),
    named("reconfig", st.builds(SetDataTxn, path=PATHS, data=DATA, version=INT32)),
    named("setACL", st.builds(SetAclTxn, path=PATHS, acls=ACLS, version=INT32)),
    named("check", st.builds(CheckVersionTxn, path=PATHS, version=INT32)),
)
ALONE = IN_MULTI | st.one_of(
    named("createSession", st.builds(CreateSessionTxn, timeout_ms=INT32)),
    named("closeSession", st.builds(CloseSessionTxn, paths=st.none() | st.lists(PATHS).map(tuple))),
)
TRANSACTIONS = st.builds(
    Transaction,
    session=st.just(SESSION),
    cxid=INT32,
    zxid=INT64,
    time_ms=INT64,
    changes=st.tuples(ALONE) | st.lists(IN_MULTI, min_size=2, max_size=4).map(tuple),
    digest=st.just(0),
    tree_digest=st.none() | INT64,
)


def told(transaction: Transaction) -> tuple[object, ...]:
    return (
        *(transaction.session, transaction.cxid, transaction.zxid, transaction.time_ms),
        *(transaction.changes, transaction.tree_digest),
    )


@given(TRANSACTIONS)
def test_a_transaction_is_read_as_it_was_written(transaction: Transaction) -> None:
    assert told(decoded_transaction(entry(transaction))) == told(transaction)


def test_every_type_is_among_those_that_are_tried() -> None:
    tried = {"createSession", "closeSession", "multi"}
    tried |= {"error", "create", "create2", "createContainer", "createTTL", "delete", "setData"}
    assert tried | {"deleteContainer", "reconfig", "setACL", "check"} == set(TYPES)


@given(TRANSACTIONS, st.data())
def test_a_part_of_a_transaction_is_none(transaction: Transaction, data: st.DataObject) -> None:
    """But for what may be left out: the digest, and the end of a session behind its header."""
    written = entry(transaction)
    cut = written[: data.draw(st.integers(0, len(written) - 1))]
    try:
        found = decoded_transaction(cut)
    except JuteError:
        return
    bare = ("closeSession", CloseSessionTxn(paths=None))
    assert found.changes in (transaction.changes, (bare,))
    assert found.tree_digest is None


def test_equal_transactions_have_equal_digests_whatever_their_trees() -> None:
    def digest(zxid: int, data: bytes, tree: int | None) -> int:
        return decoded_transaction(entry(made(zxid, setting("/a", data, 1), digest=tree))).digest

    assert digest(5, b"x", 1) == digest(5, b"x", 2) == digest(5, b"x", None)
    assert digest(5, b"x", 1) != digest(5, b"y", 1)
    assert digest(5, b"x", 1) != digest(6, b"x", 1)


def test_of_a_refused_multi_servers_may_log_other_parts() -> None:
    def digest(*changes: tuple[str, Change]) -> int:
        return decoded_transaction(entry(made(5, *changes))).digest

    refusal = ("error", ErrorTxn(error=-103))
    assert digest(creation("/a"), refusal) == digest(("error", ErrorTxn(error=0)), refusal)
    assert digest(creation("/a"), creation("/b")) != digest(creation("/a"), creation("/c"))


def test_logs_come_by_the_zxid_in_their_names(tmp_path: Path) -> None:
    for zxid in (16, 9, 1 << 32):
        write_log(tmp_path, made(zxid, creation("/a")))
    (tmp_path / "version-2" / "log.old").touch()
    names = [path.name for path in log_files(tmp_path / "version-2")]
    assert names == ["log.9", "log.10", "log.100000000"]


@pytest.mark.parametrize("zeros", [0, 64])
def test_a_log_that_was_cut_anywhere_holds_what_is_whole(tmp_path: Path, zeros: int) -> None:
    written = [made(zxid, creation(f"/{zxid}")) for zxid in (1, 2, 3)]
    ends = [len(log(written[:count], zeros=0)) for count in range(4)]
    whole = log(written, zeros=0)
    path = tmp_path / "log.1"
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut] + bytes(zeros if cut >= ends[0] else 0))
        count = max((place for place, end in enumerate(ends) if end <= cut), default=0)
        # A disk that was not written to has zeros there: the byte at the end of an entry is none.
        assert [one.zxid for one in transactions_in(path)] == [1, 2, 3][:count]


def test_damage_is_said_with_its_place_behind_all_before_it(tmp_path: Path) -> None:
    path = write_log(tmp_path, *(made(zxid, creation(f"/{zxid}")) for zxid in (1, 2, 3)))
    content = bytearray(path.read_bytes())
    at = content.index(b"/2")
    content[at] ^= 1
    path.write_bytes(content)
    found = transactions_in(path)
    assert next(found).zxid == 1
    with pytest.raises(StoredError, match=r"log\.1: the transaction at byte \d+ has the checksum"):
        next(found)


def test_what_is_no_log_and_no_transaction_is_said(tmp_path: Path) -> None:
    path = tmp_path / "log.1"
    path.write_bytes(b"something else, and long enough")
    with pytest.raises(StoredError, match=r"log\.1 is not a transaction log"):
        list(transactions_in(path))
    unknown = entry(made(9, creation("/a"))).replace(b"\0\0\0\1\0\0\0\2/a", b"\0\0\0\x63\0\0\0\2/a")
    with pytest.raises(JuteError, match="no transaction of type 99"):
        decoded_transaction(unknown)
    with pytest.raises(JuteError, match="3 bytes behind its end"):
        decoded_transaction(entry(made(9, creation("/a"))) + b"abc")
