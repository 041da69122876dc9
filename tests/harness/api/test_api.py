"""`import fencepost`, as a user of the library sees it."""

import subprocess
import sys
from pathlib import Path

import pytest

import fencepost
from fencepost.harness.api.page import PAGE, api_page, mark_of

ROOT = Path(__file__).parents[3]


def test_the_page_is_the_one_drawn_from_the_interface() -> None:
    assert PAGE.read_text(encoding="utf-8") == api_page(), "run `make docs`"


def test_a_change_of_the_interface_has_a_line_in_the_changelog() -> None:
    page = PAGE.read_text(encoding="utf-8")
    mark = mark_of(page[page.index("## `fencepost.") :])
    assert mark in page
    assert mark in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_another_interface_has_another_mark() -> None:
    assert mark_of("run(scenario)") != mark_of("run(scenario, seed)")


def test_importing_it_imports_nothing_slow() -> None:
    program = "import sys, fencepost; print([one for one in sys.modules if '.' in one])"
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert not {"pyarrow", "numpy", "click"} & set(ended.stdout.split("'"))
    assert "fencepost.harness" not in ended.stdout


def test_a_flag_that_there_is_not_is_refused_with_what_is_meant() -> None:
    with pytest.raises(fencepost.UsageError, match="--cluster"):
        fencepost.run("smoke", clust="simulated")


def test_a_run_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(fencepost.UsageError):
        fencepost.open("latest", results=tmp_path)


@pytest.mark.parametrize(
    "flags", [{"dry_run": True}, {"runs": 2}, {"json": True}, {"keep_running": "5m"}]
)
def test_a_call_makes_one_run(flags: dict[str, object]) -> None:
    with pytest.raises(fencepost.UsageError, match="one run"):
        fencepost.run("smoke", **flags)


@pytest.mark.parametrize("flags", [{"store": 2}, {"keep": ["excused"]}, {"dry_run": True}])
def test_a_flag_that_counting_trials_has_no_use_for_is_refused(flags: dict[str, object]) -> None:
    with pytest.raises(fencepost.UsageError, match="stores and prints nothing"):
        fencepost.simulate("storm", **flags)


def test_a_storm_has_no_parameters() -> None:
    with pytest.raises(fencepost.UsageError, match="has no parameters"):
        fencepost.simulate("storm", set={"rate": 1})


def test_a_name_that_there_is_not_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no 'runs'"):
        fencepost.runs  # noqa: B018


@pytest.mark.spark
def test_trials_are_counted_and_a_missing_rule_is_found() -> None:
    whole = fencepost.simulate("storm", seeds=8, first=11)
    assert whole.trial_count == 8
    assert not whole.found
    broken = fencepost.simulate(
        "storm", seeds=200, first=1, without_rule=["epoch_from_offset"], until=1
    )
    assert broken.found
