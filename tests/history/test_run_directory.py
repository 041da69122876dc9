from datetime import UTC, datetime
from pathlib import Path

import pytest

from fencepost.history.failure import UsageError
from fencepost.history.run_directory import RunDirectory, find_run

AT = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)


def recorded(results: Path, scenario: str, at: datetime = AT) -> RunDirectory:
    run = RunDirectory.create(results, scenario, at)
    run.manifest_path.write_text("{}")
    return run


def test_a_run_is_named_by_its_scenario_and_its_second(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path, "kip-903", AT)
    assert run.root == tmp_path / "kip-903" / "20250304T050607Z"
    assert run.raw.is_dir()
    assert not run.history.exists()


def test_runs_of_one_second_do_not_share_a_directory(tmp_path: Path) -> None:
    runs = [RunDirectory.create(tmp_path, "s", AT) for _ in range(3)]
    assert len({run.root for run in runs}) == 3
    assert sorted(runs, key=lambda run: run.root.name) == runs


def test_both_latest_links_follow_the_last_run(tmp_path: Path) -> None:
    recorded(tmp_path, "a")
    last_of_a = recorded(tmp_path, "a")
    last = recorded(tmp_path, "b")
    assert find_run("a", tmp_path).root == last_of_a.root
    assert find_run("latest", tmp_path).root == last.root


def test_a_discarded_run_leaves_nothing_and_the_links_lead_to_the_run_before(
    tmp_path: Path,
) -> None:
    run = recorded(tmp_path, "a")
    assert run.is_blank
    run.discard()
    assert list(tmp_path.iterdir()) == []
    first = recorded(tmp_path, "a")
    other = recorded(tmp_path, "b", datetime(2024, 3, 4, 5, 6, 7, tzinfo=UTC))
    recorded(tmp_path, "a").discard()
    assert find_run("a", tmp_path).root == first.root
    assert find_run("latest", tmp_path).root == first.root
    first.discard()
    assert find_run("latest", tmp_path).root == other.root
    assert [path.name for path in tmp_path.iterdir() if path.name != "latest"] == ["b"]


@pytest.mark.parametrize("part", ["raw", "nodes", "clients"])
def test_a_run_in_which_something_was_written_is_not_blank(tmp_path: Path, part: str) -> None:
    run = recorded(tmp_path, "a")
    (run.root / part / "file").touch()
    assert not run.is_blank
    (run.root / part / "file").unlink()
    (run.root / part).rmdir()  # as `raw` once it is sealed
    assert not run.is_blank


def test_a_run_is_found_by_its_path_and_by_its_name_in_the_results(tmp_path: Path) -> None:
    run = recorded(tmp_path, "a")
    recorded(tmp_path, "a")
    assert find_run(str(run.root), tmp_path).root == run.root
    assert find_run(f"a/{run.root.name}", tmp_path).root == run.root


def test_a_run_that_is_not_there_is_answered_with_those_that_are(tmp_path: Path) -> None:
    recorded(tmp_path, "kip-903")
    with pytest.raises(UsageError, match=r"no run 'kip-930'.*kip-903/20250304T050607Z"):
        find_run("kip-930", tmp_path)


def test_without_any_run_the_answer_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there are no runs yet"):
        find_run("latest", tmp_path)


@pytest.mark.parametrize("name", ["", "latest", "a/b", "..", ".hidden", "a b"])
def test_a_scenario_that_cannot_be_a_directory_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="scenario name"):
        RunDirectory.create(tmp_path, name, AT)
