"""Records are written and read by one table, in the bytes that ZooKeeper's own classes write."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_files import ANYONE, TYPES, creation, entry, made, setting

from fencepost.clusters.data_tree.transactions import (
    CONTAINER_OWNER,
    TTL_OWNER,
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
)
from fencepost.clusters.protocol.jute import JuteReader
from fencepost.clusters.protocol.zookeeper_records import (
    OPERATIONS,
    RECORDS,
    head_of,
    read,
    written,
)
from fencepost.clusters.protocol.zookeeper_transactions import (
    decoded_transaction,
    encoded_transaction,
)


def values(kind: str) -> st.SearchStrategy[Any]:
    """What a field of this kind may have."""
    simple: dict[str, st.SearchStrategy[Any]] = {
        "int": st.integers(-(1 << 31), (1 << 31) - 1),
        "long": st.integers(-(1 << 63), (1 << 63) - 1),
        "boolean": st.booleans(),
        "buffer": st.none() | st.binary(max_size=9),
        "ustring": st.text(st.characters(codec="utf-8"), max_size=9),
    }
    if kind.startswith("vector<"):
        return st.lists(values(kind[7:-1]), max_size=3)
    return simple[kind] if kind in simple else records(kind)


def records(name: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({field: values(kind) for kind, field in RECORDS[name]})


@pytest.mark.parametrize("record", RECORDS)
@given(st.data())
def test_a_record_is_read_as_it_was_written(record: str, data: st.DataObject) -> None:
    said = data.draw(records(record))
    jute = JuteReader(written(record, **said))
    assert read(jute, record) == said
    assert jute.ended


def test_a_record_lies_there_as_jute_has_it() -> None:
    asked = written("SetDataRequest", path="/a", data=b"xy", version=-1)
    assert asked == b"\0\0\0\2/a\0\0\0\2xy\xff\xff\xff\xff"
    acl = written("ACL", perms=31, id={"scheme": "world", "id": "anyone"})
    assert acl == b"\0\0\0\x1f\0\0\0\5world\0\0\0\6anyone"
    assert head_of("RequestHeader", framed=True).format == ">iii"
    assert head_of("ConnectRequest").format == ">iqiq"
    assert head_of("Stat").size == 68


def test_every_record_that_an_operation_names_is_there() -> None:
    named = {one for _, *several in OPERATIONS.values() for one in several if one}
    assert named <= set(RECORDS)


CHANGES: tuple[tuple[str, Change], ...] = (
    creation("/a", data=b"1", owner=7, nth=3),
    ("create2", creation("/b")[1]),
    (
        "createContainer",
        CreateTxn(
            path="/c", data=None, acls=ANYONE, ephemeral_owner=CONTAINER_OWNER, parent_cversion=4
        ),
    ),
    (
        "createTTL",
        CreateTxn(
            path="/d", data=b"", acls=ANYONE, ephemeral_owner=TTL_OWNER | 60_000, parent_cversion=5
        ),
    ),
    ("delete", DeleteTxn(path="/a")),
    ("deleteContainer", DeleteTxn(path="/c")),
    setting("/a", b"2", 1),
    ("reconfig", setting("/zookeeper/config", b"", 2)[1]),
    ("setACL", SetAclTxn(path="/a", acls=ANYONE, version=1)),
    ("check", CheckVersionTxn(path="/a", version=2)),
    ("createSession", CreateSessionTxn(timeout_ms=4000)),
    ("closeSession", CloseSessionTxn(paths=("/a", "/b"))),
    ("closeSession", CloseSessionTxn(paths=None)),
    ("error", ErrorTxn(error=-101)),
)


def test_every_type_of_transaction_is_compared_below() -> None:
    assert {name for name, _ in CHANGES} == TYPES.keys() - {"multi"}


@pytest.mark.parametrize("changes", [*((one,) for one in CHANGES), CHANGES[:5]])
def test_a_transaction_is_written_as_a_server_writes_it_and_read_again(
    changes: tuple[tuple[str, Change], ...],
) -> None:
    transaction = made(1 << 32 | 5, *changes)
    assert encoded_transaction(transaction) == entry(transaction)
    assert decoded_transaction(entry(transaction)).changes == changes
