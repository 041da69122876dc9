"""Quick looks at disks that change: the end of a log, the names of topics."""

import struct
from pathlib import Path

import pytest
from disks import TOPIC_ID, batch, ours, segment, topic_record

from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.witness.live import log_end_offset, topic_names
from fencepost.clusters.witness.metadata_log import METADATA_DIRECTORY

ONE_OF_THREE = len(batch([ours(0)] * 3, base_offset=0))


def index(data: Path, *entries: tuple[int, int], base_offset: int = 0) -> None:
    """An offset index: (relative offset, position), in a file that is larger than they are."""
    content = b"".join(struct.pack(">ii", *entry) for entry in entries)
    (data / "t-0" / f"{base_offset:020}.index").write_bytes(content.ljust(4096, b"\x00"))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    whole = [batch([ours(0)] * 3, base_offset=base) for base in (0, 3, 6, 9)]
    segment(tmp_path / "t-0", 0, *whole)
    return tmp_path


def test_the_end_of_a_log_is_behind_its_last_batch(data: Path) -> None:
    assert log_end_offset(data, "t-0") == 12
    segment(data / "t-0", 12)
    assert log_end_offset(data, "t-0") == 12
    segment(data / "t-0", 12, batch([ours(1)], base_offset=12))
    assert log_end_offset(data, "t-0") == 13


def test_a_replica_that_is_not_there_has_no_end(data: Path) -> None:
    assert log_end_offset(data, "t-1") is None
    (data / "t-1").mkdir()
    assert log_end_offset(data, "t-1") is None


def test_a_half_written_batch_does_not_count(data: Path) -> None:
    path = data / "t-0" / f"{0:020}.log"
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert log_end_offset(data, "t-0") == 3 * (cut // ONE_OF_THREE)


@pytest.mark.parametrize(
    "entries",
    [
        ((5, ONE_OF_THREE), (8, 2 * ONE_OF_THREE)),
        # A position whose last byte is zero, so that the padding seems to begin one byte early.
        ((5, ONE_OF_THREE), (8, 2 * ONE_OF_THREE), (8, 256)),
        # Left behind by records that were truncated: past the end, or within another batch.
        ((5, ONE_OF_THREE), (900, 9000)),
        ((5, ONE_OF_THREE), (900, 2 * ONE_OF_THREE + 7)),
        (),
    ],
)
def test_an_index_helps_and_never_misleads(
    data: Path, entries: tuple[tuple[int, int], ...]
) -> None:
    index(data, *entries)
    assert log_end_offset(data, "t-0") == 12


def test_an_index_spares_the_beginning(data: Path) -> None:
    path = data / "t-0" / f"{0:020}.log"
    path.write_bytes(bytes(2 * ONE_OF_THREE) + path.read_bytes()[2 * ONE_OF_THREE :])
    assert log_end_offset(data, "t-0") == 0
    index(data, (8, 2 * ONE_OF_THREE))
    assert log_end_offset(data, "t-0") == 12


def test_topics_are_known_by_id(tmp_path: Path, definitions: Definitions) -> None:
    records = [topic_record("t"), topic_record("u", bytes(16))]
    segment(tmp_path / METADATA_DIRECTORY, 0, batch(records, base_offset=0))
    assert topic_names(tmp_path, definitions) == {TOPIC_ID: "t", "A" * 22: "u"}
    assert topic_names(tmp_path / "gone", definitions) == {}
