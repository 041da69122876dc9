"""What a simulated server's log has is read from its file as a real one's is."""

from pathlib import Path

from clusters.data_tree.transactions import (
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetDataTxn,
)
from clusters.data_tree.tree import OPEN
from clusters.reference_zookeeper.simulated.log_files import write_log
from clusters.simulation.zookeeper.transactions import (
    Checked,
    CommittedTransaction,
    Created,
    Deleted,
    Ended,
    Refused,
    Started,
    Updated,
)
from clusters.zookeeper.stored.logs import log_files, transactions_in

EPOCH = 1 << 32


def test_every_kind_of_change_is_read_again(tmp_path: Path) -> None:
    made = (
        (Started(4000),),
        (Created("/a", b"1", 0, 1),),
        (Created("/a/e", b"", 7, 1), Updated("/a", b"2", 1), Checked("/a", 1)),
        (Refused(-103),),
        (Refused(0), Refused(-101)),
        (Deleted("/b"),),
        (Ended(("/a/e",)),),
    )
    log = [CommittedTransaction(EPOCH + 1 + at, 7, at, 10 * at, one) for at, one in enumerate(made)]
    write_log(tmp_path, log, origin_ms=1_000)
    (file,) = log_files(tmp_path / "version-2")
    found = list(transactions_in(file))
    assert [one.zxid for one in found] == [EPOCH + 1 + at for at in range(len(made))]
    assert [one.cxid for one in found] == list(range(len(made)))
    assert [one.time_ms for one in found] == [1_000 + 10 * at for at in range(len(made))]
    assert {one.session for one in found} == {7}
    assert [tuple(change for _, change in one.changes) for one in found] == [
        (CreateSessionTxn(timeout_ms=4000),),
        (CreateTxn(path="/a", data=b"1", acls=OPEN, ephemeral_owner=0, parent_cversion=1),),
        (
            CreateTxn(path="/a/e", data=b"", acls=OPEN, ephemeral_owner=7, parent_cversion=1),
            SetDataTxn(path="/a", data=b"2", version=1),
            CheckVersionTxn(path="/a", version=1),
        ),
        (ErrorTxn(error=-103),),
        (ErrorTxn(error=0), ErrorTxn(error=-101)),
        (DeleteTxn(path="/b"),),
        (CloseSessionTxn(paths=("/a/e",)),),
    ]


def test_a_server_that_has_written_nothing_has_an_empty_log(tmp_path: Path) -> None:
    write_log(tmp_path, (), origin_ms=0)
    assert [list(transactions_in(file)) for file in log_files(tmp_path / "version-2")] == [[]]
