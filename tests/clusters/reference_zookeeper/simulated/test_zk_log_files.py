"""What a simulated server's log has is read from its file as a real one's is."""

from pathlib import Path

from fencepost.clusters.data_tree.transactions import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetDataTxn,
    Transaction,
)
from fencepost.clusters.data_tree.tree import OPEN
from fencepost.clusters.reference_zookeeper.simulated.log_files import write_log
from fencepost.clusters.zookeeper.stored.logs import log_files, transactions_in

EPOCH = 1 << 32


def creation(path: str, data: bytes, *, owner: int, nth: int) -> CreateTxn:
    return CreateTxn(path=path, data=data, acls=OPEN, ephemeral_owner=owner, parent_cversion=nth)


CHANGES: tuple[tuple[tuple[str, Change], ...], ...] = (
    (("createSession", CreateSessionTxn(timeout_ms=4000)),),
    (("create", creation("/a", b"1", owner=0, nth=1)),),
    (
        ("create", creation("/a/e", b"", owner=7, nth=1)),
        ("setData", SetDataTxn(path="/a", data=b"2", version=1)),
        ("check", CheckVersionTxn(path="/a", version=1)),
    ),
    (("error", ErrorTxn(error=-103)),),
    (("error", ErrorTxn(error=0)), ("error", ErrorTxn(error=-101))),
    (("delete", DeleteTxn(path="/b")),),
    (("closeSession", CloseSessionTxn(paths=("/a/e",))),),
)


def test_every_kind_of_change_is_read_again(tmp_path: Path) -> None:
    log = [transaction(EPOCH + 1 + at, at, one) for at, one in enumerate(CHANGES)]
    write_log(tmp_path, log, origin_ms=1_000)
    (file,) = log_files(tmp_path / "version-2")
    found = list(transactions_in(file))
    assert [one.zxid for one in found] == [EPOCH + 1 + at for at in range(len(CHANGES))]
    assert [one.cxid for one in found] == list(range(len(CHANGES)))
    assert [one.time_ms for one in found] == [1_000 + 10 * at for at in range(len(CHANGES))]
    assert {one.session for one in found} == {7}
    assert [one.changes for one in found] == list(CHANGES)


def transaction(zxid: int, at: int, changes: tuple[tuple[str, Change], ...]) -> Transaction:
    return Transaction(
        session=7,
        cxid=at,
        zxid=zxid,
        time_ms=10 * at,
        changes=changes,
        digest=0,
        tree_digest=None,
    )


def test_a_server_that_has_written_nothing_has_an_empty_log(tmp_path: Path) -> None:
    write_log(tmp_path, (), origin_ms=0)
    assert [list(transactions_in(file)) for file in log_files(tmp_path / "version-2")] == [[]]
