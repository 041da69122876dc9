"""The page of the reference cluster says what the code says, and the code reads what it says."""

import re
from dataclasses import fields
from pathlib import Path

import pytest

from fencepost.checkers.catalogue import CATALOGUE
from fencepost.clusters.reference.nodes.rules import RULES, Rules
from fencepost.clusters.reference.pages import (
    ZK_SECTIONS,
    broker_diagram,
    rules_table,
    voter_diagram,
    with_sections,
)
from fencepost.clusters.reference.zk.rules import ZK_RULES
from fencepost.harness.trials.trial import STUCK
from fencepost.history.failure import UsageError

PAGE = Path(__file__).parents[3] / "docs" / "reference-cluster.md"
SIMULATOR = PAGE.with_name("simulator.md")
NODES = Path(__file__).parents[3] / "clusters" / "reference"


def test_the_page_is_as_the_tables_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_sections(page) == page, "run python -m fencepost.clusters.reference.pages"


def test_the_page_of_the_zookeeper_generation_is_as_its_table() -> None:
    page = PAGE.with_name("reference-zookeeper.md").read_text(encoding="utf-8")
    assert with_sections(page, ZK_SECTIONS) == page, "run `make docs`"


def test_every_switch_is_a_row_and_every_row_a_switch() -> None:
    switches = [field.name for field in fields(Rules)]
    assert re.findall(r"^\| `(\w+)`", rules_table(), re.MULTILINE) == switches


def test_what_a_rule_shows_as_is_in_the_catalogue_or_found_by_the_oracle() -> None:
    known = {entry.name for entry in CATALOGUE} | _oracles()
    assert {name for rule in RULES for name in rule.shows_as} <= known


def test_the_page_of_the_simulator_has_every_anomaly_that_the_oracle_finds() -> None:
    code = "".join(path.read_text("utf-8") for path in sorted((NODES / "oracle").glob("*.py")))
    found = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|duplicate)"', code)) | {STUCK}
    assert found == _oracles()


def test_every_switch_is_read_by_a_node_beside_its_name() -> None:
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(NODES.rglob("*.py"))
        if path.name not in ("rules.py", "pages.py")
    )
    every = (*RULES, *ZK_RULES)
    unread = [rule.name for rule in every if f"rules.{rule.name}" not in code]
    unnamed = [rule.name for rule in every if f"# Rule {rule.name}" not in code]
    assert (unread, unnamed) == ([], [])


def test_a_broker_leaves_by_controlled_shutdown_when_it_runs() -> None:
    assert "    RUNNING --> PENDING_CONTROLLED_SHUTDOWN : asked to stop\n" in broker_diagram()


def test_what_moves_every_voter_is_drawn_once() -> None:
    assert re.findall(r"(\w+) --> \w+ : heard who leads\n", voter_diagram()) == ["any"]


def test_a_page_without_a_marker_is_refused() -> None:
    with pytest.raises(UsageError, match="rules"):
        with_sections("# The reference cluster\n")


def _oracles() -> set[str]:
    """The anomalies in the table of the oracle on the simulator's page."""
    (section,) = re.findall(
        r"^## The oracle\n(.*?)^## ", SIMULATOR.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    rows = re.findall(r"^\| (`[^|]+) \|", section, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`([\w-]+)`", row)}
