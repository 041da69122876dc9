"""A file of a node is seen to change, whichever way it does."""

from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.harness.timing import FileWatch


class StoppedTime:
    """Time that passes while one sleeps; `then` is done at the third look."""

    def __init__(self, then: Callable[[], object] = lambda: None) -> None:
        self._slept: list[float] = []
        self._then = then

    def now_s(self) -> float:
        return sum(self._slept)

    def sleep(self, seconds: float) -> None:
        self._slept.append(seconds)
        if len(self._slept) == 3:
            self._then()

    def sleep_until(self, moment_s: float) -> None:
        raise NotImplementedError


def replaced(path: Path) -> None:
    draft = path.with_name("draft")
    draft.write_text("1")
    draft.replace(path)


@pytest.mark.parametrize(
    "change",
    [replaced, lambda path: path.write_text("12"), lambda path: path.unlink()],
    ids=["replaced by an equal one", "written", "deleted"],
)
def test_a_file_changes(tmp_path: Path, change: Callable[[Path], object]) -> None:
    path = tmp_path / "currentEpoch"
    path.write_text("1")
    watch = FileWatch(path)
    assert not watch.has_changed
    change(path)
    assert watch.has_changed


def test_a_file_is_made_in_a_directory_that_was_not_there(tmp_path: Path) -> None:
    path = tmp_path / "version-2" / "currentEpoch"
    watch = FileWatch(path)
    path.parent.mkdir()
    assert not watch.has_changed
    path.write_text("1")
    assert watch.has_changed


def test_a_name_is_added_to_a_directory(tmp_path: Path) -> None:
    watch = FileWatch(tmp_path)
    (tmp_path / "snapshot.1").write_text("")
    assert watch.has_changed


def test_a_file_whose_name_fits_a_pattern_changes(tmp_path: Path) -> None:
    (tmp_path / "snapshot.1").write_text("")
    watch = FileWatch(tmp_path / "snapshot.*")
    (tmp_path / "log.2").write_text("")
    assert not watch.has_changed
    (tmp_path / "snapshot.2").write_text("")
    assert watch.has_changed


def test_it_goes_on_at_the_first_look_after_the_change(tmp_path: Path) -> None:
    path = tmp_path / "currentEpoch"
    time = StoppedTime(then=lambda: path.write_text("1"))
    assert FileWatch(path).changes_within(1.0, time)
    assert time.now_s() == pytest.approx(0.003)


def test_it_gives_up_in_time(tmp_path: Path) -> None:
    time = StoppedTime()
    assert not FileWatch(tmp_path / "currentEpoch").changes_within(0.05, time)
    assert time.now_s() == pytest.approx(0.05, abs=0.002)
