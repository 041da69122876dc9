"""Copies are complete, keep their holes, and take the place of what was there."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.hosts.disk import (
    copy_directory,
    file_sizes,
    remove_directory,
    replace_directory,
)
from fencepost.history.failure import HarnessError

HOLE = 10 << 20


def blocks(path: Path) -> int:
    return path.stat().st_blocks * 512


def sparse(path: Path, extents: list[tuple[int, bytes]], *, size: int) -> None:
    with path.open("wb") as writer:
        for start, data in extents:
            writer.seek(start)
            writer.write(data)
        writer.truncate(size)


def test_a_copy_has_the_same_files_content_modes_and_times(tmp_path: Path) -> None:
    source = tmp_path / "data"
    (source / "t-0").mkdir(parents=True)
    (source / "t-0" / "0.log").write_bytes(b"records")
    (source / "meta.properties").write_text("node.id=1\n")
    (source / "meta.properties").chmod(0o600)
    os.utime(source / "t-0" / "0.log", ns=(1, 2_000_000_000))
    copy_directory(source, tmp_path / "copy")
    assert file_sizes(tmp_path / "copy") == file_sizes(source)
    assert (tmp_path / "copy" / "t-0" / "0.log").read_bytes() == b"records"
    assert (tmp_path / "copy" / "t-0" / "0.log").stat().st_mtime_ns == 2_000_000_000
    assert (tmp_path / "copy" / "meta.properties").stat().st_mode & 0o777 == 0o600


@given(
    extents=st.lists(
        st.tuples(st.integers(0, 1 << 18), st.binary(min_size=1, max_size=9000)), max_size=4
    ),
    tail=st.integers(0, 1 << 18),
)
def test_a_sparse_file_is_copied_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory, extents: list[tuple[int, bytes]], tail: int
) -> None:
    root = tmp_path_factory.mktemp("sparse")
    (root / "data").mkdir()
    size = max((start + len(data) for start, data in extents), default=0) + tail
    sparse(root / "data" / "index", extents, size=size)
    copy_directory(root / "data", root / "copy")
    copied = root / "copy" / "index"
    assert copied.read_bytes() == (root / "data" / "index").read_bytes()


def test_holes_stay_holes(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    original = tmp_path / "data" / "index"
    sparse(original, [(HOLE, b"end")], size=2 * HOLE)
    if blocks(original) > HOLE:
        pytest.skip("this file system keeps no holes")
    copy_directory(tmp_path / "data", tmp_path / "copy")
    assert blocks(tmp_path / "copy" / "index") <= blocks(original)


def test_a_replaced_directory_holds_the_copy_and_nothing_else(tmp_path: Path) -> None:
    for name in ("data", "backup"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.log").write_text(name)
    replace_directory(tmp_path / "data", by=tmp_path / "backup")
    assert file_sizes(tmp_path / "data") == {Path("backup.log"): 6}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backup", "data"]


def test_a_removed_directory_is_gone_and_may_be_removed_again(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    remove_directory(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    remove_directory(tmp_path / "data")


def test_a_copy_that_cannot_be_made_names_both_places(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match=f"cannot copy {tmp_path}/data to {tmp_path}/copy"):
        copy_directory(tmp_path / "data", tmp_path / "copy")


def test_what_cannot_be_deleted_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("not a directory")
    with pytest.raises(HarnessError, match=f"cannot delete {tmp_path}/data"):
        remove_directory(tmp_path / "data")
