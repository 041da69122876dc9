"""Rules switched off, and the checks that find them out: each line of docs/selftest.md holds."""

from pathlib import Path

import pytest

from checkers.catalogue import CATALOGUE
from clusters.reference.rules import RULES
from harness.trials.checked import attempted
from harness.trials.examples import Example, subject_of
from harness.trials.selftest_page import examples_in

LINES = examples_in(Path(__file__).parents[3] / "docs/selftest.md")


def test_the_page_names_each_rule_and_only_checks_that_there_are() -> None:
    assert [example.rule for example, _ in LINES] == [rule.name for rule in RULES]
    named = {check for _, checks in LINES for check in checks}
    assert named <= {entry.name for entry in CATALOGUE}


@pytest.mark.parametrize(("example", "checks"), LINES, ids=[one.rule for one, _ in LINES])
def test_a_rule_switched_off_is_found_out_by_a_check(
    example: Example, checks: tuple[str, ...]
) -> None:
    found = attempted(subject_of(example)).found
    assert checks[0] in found
    assert found[checks[0]], "a proof says who did what"
