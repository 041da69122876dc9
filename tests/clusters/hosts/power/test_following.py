"""What is left after a loss of power of what a real process did, against a slow model of a disk."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from forgetful_disk import ForgetfulDisk
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.clusters.hosts.power.crash_image import (
    CREATE,
    EXTEND,
    OVERWRITE,
    SHRINK,
    DirectoryState,
    File,
    Note,
    PowerLoss,
    Restoration,
    Rewrite,
    bytes_to_restore,
    lose_power,
    names_to_undo,
    settle,
)
from fencepost.clusters.hosts.power.library import build, follow_library

pytestmark = pytest.mark.slow

_DEEDS = Path(__file__).with_name("power_deeds.py")

Deed = tuple[object, ...]
Held = tuple[set[str], dict[str, bytes]]
"""Directories and files by their paths."""


@pytest.fixture(scope="module", params=["shipped", "built"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "shipped":
        return follow_library()
    if shutil.which("cc") is None:
        pytest.skip("no C compiler")
    target = tmp_path_factory.mktemp("library") / "built.so"
    build(target)
    return target


class Worker:
    """A process that does deeds below `<home>/disk`, followed in `<home>/followed`."""

    def __init__(self, home: Path, library: Path) -> None:
        self.disk, self._follower = home / "disk", home / "followed"
        self._library = library
        self.disk.mkdir()
        settle(self._follower)
        self._process = self._started()

    def do(self, *deed: object) -> int | None:
        """Have it done; the number of its error."""
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None
        assert answers is not None
        asked.write(json.dumps(deed) + "\n")
        asked.flush()
        answer = json.loads(answers.readline())
        assert answer is None or isinstance(answer, int)
        return answer

    def restart(self) -> None:
        """Kill -9, and another process goes on."""
        self.end()
        self._process = self._started()

    def lose_power(self, seed: str | None = None) -> PowerLoss:
        self.end()
        return lose_power(self.disk, self._follower, seed)

    def end(self) -> None:
        with self._process as process:
            process.kill()

    def notes_bytes(self) -> int:
        return (self._follower / "journal").stat().st_size

    def kept(self) -> list[Path]:
        return list((self._follower / "kept").iterdir())

    def _started(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-S", "-E", str(_DEEDS)],
            cwd=self.disk,
            env={
                "LD_PRELOAD": str(self._library),
                "FENCEPOST_FOLLOWED": str(self.disk),
                "FENCEPOST_FOLLOWER": str(self._follower),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )


@contextmanager
def working(library: Path) -> Iterator[Worker]:
    with tempfile.TemporaryDirectory(prefix="fencepost-follow-") as home:
        worker = Worker(Path(home), library)
        try:
            yield worker
        finally:
            worker.end()


def held(disk: Path) -> Held:
    paths = list(disk.rglob("*"))
    directories = {str(path.relative_to(disk)) for path in paths if path.is_dir()} | {"."}
    files = {str(path.relative_to(disk)): path.read_bytes() for path in paths if path.is_file()}
    return directories, files


_SYNCED_FILE: tuple[Deed, ...] = (("create", "a"), ("append", "a", "1234567"), ("sync", "a"))

_FILES = st.sampled_from(["a", "b", "c", "d/a", "d/b", "e/a"])
_DIRECTORIES = st.sampled_from(["d", "e"])
_CONTENT = st.text("xyz", max_size=9)
_SIZES = st.integers(0, 12)
_ANY_DEED = st.one_of(
    st.tuples(st.just("create"), _FILES),
    st.tuples(st.just("write"), _FILES, _SIZES, _CONTENT),
    st.tuples(st.just("append"), _FILES, _CONTENT),
    st.tuples(st.just("write_synced"), _FILES, _CONTENT),
    st.tuples(st.just("sync"), _FILES | st.just(".")),
    st.tuples(st.just("truncate"), _FILES, _SIZES),
    st.tuples(st.just("rename"), _FILES, _FILES),
    st.tuples(st.just("rename"), _DIRECTORIES, _DIRECTORIES),
    st.tuples(st.just("unlink"), _FILES),
    st.tuples(st.just("link"), _FILES, _FILES),
    st.tuples(st.just("mkdir"), _DIRECTORIES),
    st.tuples(st.just("rmdir"), _DIRECTORIES),
    st.tuples(st.just("restart")),
)


@settings(max_examples=3 * settings().max_examples // 5)
@given(deeds=st.lists(_ANY_DEED, max_size=30), synced=st.booleans())
def test_what_is_left_is_what_a_disk_with_a_journal_leaves(
    deeds: list[Deed], *, synced: bool
) -> None:
    model = ForgetfulDisk()
    with working(follow_library()) as worker:
        for deed in (*(_SYNCED_FILE if synced else ()), *deeds):
            if deed == ("restart",):
                worker.restart()
            elif worker.do(*deed) is None:
                model.do(*deed)
        assert held(worker.disk) == (model.live.directories, model.live.files())
        worker.lose_power()
        assert held(worker.disk) == (model.durable.directories, model.durable.files())


def test_only_what_was_synced_is_left(library: Path) -> None:
    with working(library) as worker:
        for deed in (*_SYNCED_FILE, ("append", "a", "89"), ("write", "a", 2, "xx")):
            assert worker.do(*deed) is None
        assert (worker.disk / "a").read_text() == "12xx56789"
        assert worker.lose_power() == PowerLoss(1, "")
        assert held(worker.disk) == ({"."}, {"a": b"1234567"})


def test_a_name_may_be_durable_and_its_file_empty(library: Path) -> None:
    with working(library) as worker:
        worker.do("create", "draft")
        worker.do("append", "draft", "whole")
        worker.do("rename", "draft", "file")
        worker.do("sync", ".")
        worker.lose_power()
        assert held(worker.disk) == ({"."}, {"file": b""})


def test_a_torn_log_keeps_whole_pages_of_what_was_not_synced(library: Path) -> None:
    with working(library) as worker:
        worker.do("create", "0.log")
        worker.do("append", "0.log", "x" * 50_000)
        said = worker.lose_power("3").torn
        size = (worker.disk / "0.log").stat().st_size
        assert said == f"written back before: {size} bytes of 0.log"
        assert size in (50_000, *range(4096, 50_000, 4096))


def test_notes_and_what_is_kept_go_with_the_next_sync(library: Path) -> None:
    with working(library) as worker:
        for _ in range(3):
            for deed in (*_SYNCED_FILE, ("write", "a", 0, "x"), ("truncate", "a", 1)):
                worker.do(*deed)
            assert worker.kept()
            worker.do("unlink", "a")
            worker.do("sync", ".")
            assert worker.notes_bytes() == 0
            assert not worker.kept()


def test_what_cannot_be_followed_is_said_and_loses_nothing(library: Path) -> None:
    with working(library) as worker:
        worker.do("create", "a")
        worker.do("rename", "a", "../a")
        with pytest.raises(ValueError, match="moved into the directory or out of it"):
            worker.lose_power()


def test_bytes_beyond_a_durable_cut_are_not_put_back() -> None:
    state = DirectoryState(0, 4, 3, 1, {7: File(durable=9, synced_seq=0)})
    overwrite = Note(OVERWRITE, 1, inode=7, offset=0, length=8)
    cut = Note(SHRINK, 2, inode=7, offset=5, durable=8)
    grown = Note(EXTEND, 3, inode=7, offset=9, durable=5)
    assert bytes_to_restore([overwrite, cut, grown], state) == Restoration(
        (Rewrite(7, 0, 5, "d1"),), {7: 5}
    )
    everything = state._replace(durable_seq=0)
    assert bytes_to_restore([overwrite, cut, grown], everything) == Restoration(
        (Rewrite(7, 5, 3, "m2"), Rewrite(7, 0, 8, "d1")), {7: 8}
    )


def test_names_are_undone_backwards_and_only_where_they_are_not_durable() -> None:
    notes = [Note(CREATE, seq, target=f"/{seq}") for seq in range(4)]
    undone = names_to_undo(notes, DirectoryState(0, 4, 2, 1, {}))
    assert [note.target for note in undone] == ["/3", "/2"]
