"""The rules of the documents: each has its code, its switch, its tests and its check."""

from pathlib import Path

import pytest

from clusters.reference.documents import DOCUMENT_RULES, DOCUMENTS
from harness.trials.generations import GENERATIONS
from harness.trials.rules_page import SWITCHES, RuleRow, rows, rules_page

ROOT = Path(__file__).parents[2]
ROWS = rows()


def test_the_page_is_as_the_code_has_it() -> None:
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    assert page == rules_page(), "run python -m harness.trials.rules_page"


def test_the_rules_of_each_document_are_counted_through() -> None:
    for letter in DOCUMENTS:
        numbers = [int(one.id[1:]) for one in DOCUMENT_RULES if one.id[0] == letter]
        assert numbers == list(range(1, len(numbers) + 1)), letter


@pytest.mark.parametrize("row", [pytest.param(row, id=row.name) for row in ROWS])
def test_a_rule_has_code_a_switch_tests_and_a_check_or_says_why_not(row: RuleRow) -> None:
    assert row.code
    for path in row.code:
        assert (ROOT / "clusters/reference" / path).is_file(), path
    assert row.tests
    assert row.switches or row.why
    assert row.checks or row.why
    assert SWITCHES.keys() >= set(row.switches)


def test_every_switch_is_tried_or_says_why_no_check_can_see_it() -> None:
    tried = {rule.name for one in GENERATIONS.values() for rule in one.tried}
    for name, rule in SWITCHES.items():
        assert (name in tried) is not bool(rule.unseen), name
