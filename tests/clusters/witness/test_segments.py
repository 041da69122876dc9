"""A log is read whole, in pieces of any size, up to the first thing that is no batch of it."""

from pathlib import Path

import pytest
from disks import batch, ours, segment

from fencepost.clusters.witness.segments import BatchRun, read_batches_file, read_log, segments_of


def three(base_offset: int) -> bytes:
    return batch([ours(base_offset + delta) for delta in range(3)], base_offset=base_offset)


def offsets_of(pieces: list[BatchRun]) -> list[int]:
    return [offset for piece in pieces for offset in piece.records.offsets.tolist()]


def damages_of(pieces: list[BatchRun]) -> list[str]:
    return [piece.damage for piece in pieces if piece.damage is not None]


def test_segments_are_the_log_files_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    for name in ("20.log", "00000000000000000009.log.deleted", "00000000000000000009.index"):
        (tmp_path / name).touch()
    segment(tmp_path, 10)
    segment(tmp_path, 9)
    assert [one.base_offset for one in segments_of(tmp_path)] == [9, 10]
    assert segments_of(tmp_path / "missing") == ()


@pytest.mark.parametrize("piece_bytes", [1, 60, 61, 100, 1 << 20])
def test_pieces_of_any_size_make_the_same_log(tmp_path: Path, piece_bytes: int) -> None:
    segment(tmp_path, 0, three(0), three(3))
    segment(tmp_path, 6, three(6))
    pieces = list(read_log(tmp_path, piece_bytes=piece_bytes))
    assert offsets_of(pieces) == list(range(9))
    assert damages_of(pieces) == []


@pytest.mark.parametrize("piece_bytes", [1, 100, 1 << 20])
def test_a_log_torn_at_any_byte_ends_with_its_last_whole_batch(
    tmp_path: Path, piece_bytes: int
) -> None:
    whole = three(0) + three(3)
    path = segment(tmp_path, 0)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        pieces = list(read_log(tmp_path, piece_bytes=piece_bytes))
        assert offsets_of(pieces) == [0, 1, 2][: 3 * (cut // len(three(0)))]
        if cut in (0, len(three(0))):
            assert damages_of(pieces) == []
        else:
            [damage] = damages_of(pieces)
            start = cut // len(three(0)) * len(three(0))
            assert damage.startswith(f"{0:020}.log, byte {start}: ends within ")


def test_nothing_is_read_behind_a_damage(tmp_path: Path) -> None:
    bad = bytearray(three(3))
    bad[-1] ^= 1
    segment(tmp_path, 0, three(0), bytes(bad))
    segment(tmp_path, 6, three(6))
    pieces = list(read_log(tmp_path))
    assert offsets_of(pieces) == [0, 1, 2]
    [damage] = damages_of(pieces)
    assert damage.startswith(
        f"{0:020}.log, byte {len(three(0))}: checksum of the batch at offset 3"
    )


def test_a_batch_of_which_the_records_are_nonsense_is_a_damage(tmp_path: Path) -> None:
    nonsense = bytearray(batch([b""] * 2, base_offset=3, attributes=1))
    segment(tmp_path, 0, three(0), bytes(nonsense), three(5))
    pieces = list(read_log(tmp_path))
    assert offsets_of(pieces) == [0, 1, 2]
    [damage] = damages_of(pieces)
    assert damage.startswith(f"{0:020}.log: the batch at offset 3: not gzip")


@pytest.mark.parametrize("apart", [False, True])
def test_offsets_that_go_back_are_a_damage(tmp_path: Path, *, apart: bool) -> None:
    if apart:
        segment(tmp_path, 0, three(0), three(3))
        path = segment(tmp_path, 4, three(4))
    else:
        path = segment(tmp_path, 0, three(0), three(3), three(4))
    pieces = list(read_log(tmp_path))
    assert offsets_of(pieces) == [0, 1, 2, 3, 4, 5]
    assert damages_of(pieces) == [
        f"{path.name}: the batch at offset 4 lies where 6 or more is expected"
    ]


def test_a_gap_that_compaction_left_is_none(tmp_path: Path) -> None:
    segment(tmp_path, 0, three(0), three(7))
    pieces = list(read_log(tmp_path))
    assert offsets_of(pieces) == [0, 1, 2, 7, 8, 9]
    assert damages_of(pieces) == []


def test_reading_begins_with_the_segment_that_holds_the_offset(tmp_path: Path) -> None:
    for base in (0, 3, 6):
        segment(tmp_path, base, three(base))
    assert offsets_of(list(read_log(tmp_path, from_offset=4))) == [3, 4, 5, 6, 7, 8]
    assert offsets_of(list(read_log(tmp_path, from_offset=6))) == [6, 7, 8]
    assert offsets_of(list(read_log(tmp_path, from_offset=99))) == [6, 7, 8]


def test_a_file_that_is_not_there_is_a_damage(tmp_path: Path) -> None:
    [piece] = read_batches_file(tmp_path / "gone.log")
    assert piece.damage == "gone.log: No such file or directory"
    assert piece.batches == ()
