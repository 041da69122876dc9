"""docs/planted.md tells every way to change a run, and what called each plant."""

from pathlib import Path

from fencepost.checkers.verdict import Validity
from fencepost.harness.metamorphic.metamorphic import Transformed
from fencepost.harness.metamorphic.planted import PLANTED
from fencepost.harness.metamorphic.planted_page import MISSED, NOTHING, UNKNOWN, planted_page

PAGE = Path(__file__).parents[3] / "docs/planted.md"
FIRST, SECOND = PLANTED[:2]


def told(check: str) -> dict[str, dict[str, str]]:
    return {"storm on simulated": {FIRST.name: check, SECOND.name: NOTHING}}


def test_the_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == planted_page(before=page), "run `make docs`"


def test_nothing_that_is_planted_was_missed() -> None:
    assert MISSED not in PAGE.read_text(encoding="utf-8")


def test_a_kind_of_run_that_is_tried_again_gets_a_new_column_and_the_others_keep_theirs() -> None:
    first = planted_page(told("unseen"))
    assert f"| `{FIRST.name}` | unseen |" in first
    other = {"smoke on kafka 4.3.1": {FIRST.name: UNKNOWN}}
    both = planted_page(other, before=first)
    assert "| plant | storm on simulated | smoke on kafka 4.3.1 |" in both
    assert f"| `{FIRST.name}` | unseen | {UNKNOWN} |" in both
    assert f"| `{SECOND.name}` | {NOTHING} |  |" in both
    again = planted_page(told("lost-write"), before=both)
    assert f"| `{FIRST.name}` | lost-write | {UNKNOWN} |" in again
    assert planted_page(before=again) == again


def test_a_cell_has_the_check_that_is_named_or_what_became_of_the_run() -> None:
    def cell(validity: Validity | None, *accused: str) -> str:
        checks = dict.fromkeys(accused, 1)
        return Transformed(transformation=FIRST, validity=validity, accused=checks).told_by

    assert cell(Validity.INVALID, "vanished", FIRST.called[1]) == FIRST.called[1]
    assert cell(Validity.UNKNOWN, "vanished") == UNKNOWN
    assert cell(Validity.INVALID, "vanished") == MISSED
    assert cell(Validity.VALID) == MISSED
    assert cell(None) == NOTHING
