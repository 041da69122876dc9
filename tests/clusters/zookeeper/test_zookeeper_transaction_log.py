"""The last transaction on a disk is read from its logs, whole or torn."""

import struct
from pathlib import Path
from zlib import adler32

from fencepost.clusters.zookeeper.transaction_log import holdings_of

EPOCH = 1 << 32


def transaction(zxid: int) -> bytes:
    body = struct.pack(">qiqqi", 7, 1, zxid, 1_700_000_000_000, 5) + b"payload"
    return struct.pack(">qi", adler32(body), len(body)) + body + b"B"


def write_log(data: Path, *zxids: int, cut: int = 0, zeros: int = 100) -> None:
    home = data / "version-2"
    home.mkdir(parents=True, exist_ok=True)
    content = struct.pack(">4siq", b"ZKLG", 2, 0) + b"".join(map(transaction, zxids))
    content = content[: len(content) - cut] + bytes(zeros)
    (home / f"log.{zxids[0]:x}").write_bytes(content)


def test_the_last_transaction_of_the_newest_log_counts(tmp_path: Path) -> None:
    write_log(tmp_path, 9, 10, 11)
    write_log(tmp_path, EPOCH + 1, EPOCH + 2)
    assert holdings_of(tmp_path).last_zxid == EPOCH + 2


def test_a_torn_transaction_is_none(tmp_path: Path) -> None:
    write_log(tmp_path, 1, 2, 3, cut=5, zeros=0)
    assert holdings_of(tmp_path).last_zxid == 2
    write_log(tmp_path, 1, 2, 3, cut=5)
    assert holdings_of(tmp_path).last_zxid == 2


def test_a_damaged_transaction_ends_what_is_held(tmp_path: Path) -> None:
    write_log(tmp_path, 1, 2, 3)
    path = tmp_path / "version-2" / "log.1"
    content = bytearray(path.read_bytes())
    content[content.rindex(b"payload")] ^= 1
    path.write_bytes(content)
    assert holdings_of(tmp_path).last_zxid == 2


def test_of_a_log_without_a_transaction_the_one_before_counts(tmp_path: Path) -> None:
    write_log(tmp_path, 1, 2)
    (tmp_path / "version-2" / "log.3").write_bytes(b"")
    assert holdings_of(tmp_path).last_zxid == 2


def test_what_is_not_there_holds_nothing(tmp_path: Path) -> None:
    found = holdings_of(tmp_path / "nowhere")
    assert (found.last_zxid, found.epochs) == (0, (-1, -1))


def test_what_a_disk_lost_is_said(tmp_path: Path) -> None:
    write_log(tmp_path, 1, 2, 3)
    (tmp_path / "version-2" / "currentEpoch").write_text("2")
    (tmp_path / "version-2" / "acceptedEpoch").write_text("2\n")
    before = holdings_of(tmp_path)
    assert before.loss(before) == "it lost nothing: all that its logs held was on the disk"
    write_log(tmp_path, 1)
    (tmp_path / "version-2" / "currentEpoch").unlink()
    assert before.loss(holdings_of(tmp_path)) == (
        "it lost the transactions after 0x1 up to 0x3, its currentEpoch went from 2 to nothing"
    )
