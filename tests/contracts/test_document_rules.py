"""The rules of the documents: each has its code, its switch, its tests and its check."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from each_rule_off import SAID, is_on_by_default

from fencepost.clusters.reference.documents import DOCUMENT_RULES, DOCUMENTS
from fencepost.harness.trials.generations import GENERATIONS
from fencepost.harness.trials.rules_page import SWITCHES, RuleRow, rows, rules_page

ROOT = Path(__file__).parents[2]
ROWS = rows()


def test_the_page_is_as_the_code_has_it() -> None:
    page = (ROOT / "docs/rules.md").read_text(encoding="utf-8")
    assert page == rules_page(), "run python -m fencepost.harness.trials.rules_page"


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


@pytest.mark.slow
def test_some_test_of_each_rule_fails_once_it_is_off() -> None:
    """A row without such a test would list tests that pass without the rule."""
    named = {name for row in ROWS for name in row.tests}
    files = {path for path in (ROOT / "tests").rglob("test_*.py") if named & set(_tests_in(path))}
    marks = "not (spark or kafka or docker or alone)"
    plugin = (
        "-p",
        "hypothesispytest",
        "-p",
        "each_rule_off",
        "-p",
        "no:cacheprovider",
        "-q",
        "-s",
        "-m",
        marks,
    )
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *map(str, sorted(files))],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{Path(__file__).parent}"},
    )
    lines = [line for line in ended.stderr.splitlines() if line.startswith(SAID)]
    said = [json.loads(line.removeprefix(SAID)) for line in lines]
    assert {one["switch"] for one in said} == {*filter(is_on_by_default, SWITCHES)}, (
        ended.stdout[-2000:] + ended.stderr[-2000:]
    )
    assert [(one["row"], one["switch"]) for one in said if one["missed"]] == []


def _tests_in(path: Path) -> list[str]:
    return re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
