"""Cache entries are whole or absent, are made by one process at a time, and are mended."""

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.provision.cache import (
    CACHE_VARIABLE,
    abandoned_drafts,
    built_beside,
    cache_dir,
    kept,
    locked,
)
from fencepost.history.failure import HarnessError

pytestmark = pytest.mark.slow


def read(entry: Path) -> str | None:
    try:
        text = (entry / "content").read_text()
    except OSError:
        return None
    return text if text != "damaged" else None


def write(draft: Path) -> None:
    (draft / "content").write_text("made")


def keep(entry: Path, said: list[str], *, build: Callable[[Path], None] = write) -> str:
    return kept(entry, read=read, build=build, doing="making it", progress=said.append)


def refuse(_draft: Path) -> None:
    raise AssertionError("built again")


def make_once(entry: Path) -> None:
    """In a process of its own: note each build beside the entry."""

    def build(draft: Path) -> None:
        with (entry.parent / "builds").open("a") as builds:
            builds.write("built\n")
        write(draft)

    assert keep(entry, [], build=build) == "made"


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, "/somewhere")
    assert cache_dir() == Path("/somewhere")
    monkeypatch.setenv(CACHE_VARIABLE, "")
    assert cache_dir().name == "fencepost"


def test_an_entry_is_made_once_and_then_read_in_silence(tmp_path: Path) -> None:
    said: list[str] = []
    assert keep(tmp_path / "a" / "entry", said) == "made"
    assert keep(tmp_path / "a" / "entry", said, build=refuse) == "made"
    assert said == ["making it"]


def test_a_damaged_entry_is_made_again_and_this_is_said(tmp_path: Path) -> None:
    entry = tmp_path / "entry"
    entry.mkdir()
    (entry / "content").write_text("damaged")
    (entry / "leftover").touch()
    said: list[str] = []
    assert keep(entry, said) == "made"
    assert said == ["making it again: it is damaged in the cache"]
    assert [path.name for path in entry.iterdir()] == ["content"]


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    def fail(draft: Path) -> None:
        write(draft)
        raise HarnessError("no network")

    with pytest.raises(HarnessError, match="no network"):
        keep(tmp_path / "entry", [], build=fail)
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


def test_processes_that_want_the_same_entry_make_it_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=make_once, args=(tmp_path / "entry",)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert (tmp_path / "builds").read_text() == "built\n"


def test_waiting_for_another_process_is_said_and_bounded(tmp_path: Path) -> None:
    said: list[str] = []
    entry = tmp_path / "entry"
    with (
        locked(entry, doing="making it", progress=said.append),
        pytest.raises(HarnessError, match="another process has been making it for 0 s; if none is"),
        locked(entry, doing="making it", progress=said.append, timeout_s=0.05),
    ):
        pytest.fail("two at once")
    assert said == ["waiting for another process that is making it"]


def test_what_appeared_meanwhile_stays(tmp_path: Path) -> None:
    with built_beside(tmp_path / "entry") as draft:
        (draft / "second").touch()
        (tmp_path / "entry").mkdir()
        (tmp_path / "entry" / "first").touch()
    assert [path.name for path in (tmp_path / "entry").iterdir()] == ["first"]


def test_a_cache_that_cannot_be_written_is_one_line_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "file"))
    with pytest.raises(HarnessError) as raised:
        keep(cache_dir() / "kafka" / "3.4.1", [])
    assert str(raised.value).startswith(f"cannot write the cache {tmp_path}/file: ")
    assert str(raised.value).endswith(f"set {CACHE_VARIABLE} to another directory")


def test_a_full_disk_is_one_line_with_the_way_out(tmp_path: Path) -> None:
    def fill(_draft: Path) -> None:
        raise OSError(28, os.strerror(28), "a.jar")

    with pytest.raises(HarnessError, match=r"No space left on device \(a.jar\); make room or set"):
        keep(tmp_path / "entry", [], build=fill)


def test_a_draft_is_abandoned_only_when_nobody_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    left = tmp_path / "java" / ".fencepost-draft-17.0.1.abandoned"
    left.mkdir(parents=True)
    with built_beside(tmp_path / "java" / "17.0.2") as draft:
        assert draft.is_dir()
        assert abandoned_drafts() == (left,)
