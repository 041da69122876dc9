"""The catalogue, the checks and the documentation say the same."""

import re
from pathlib import Path

import checkers
from checkers.anomalies_page import anomalies_list, anomalies_page
from checkers.catalogue import CATALOGUE, Kind, Strength, asked, entry_of, names_of
from history.schema import TABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_documentation_is_the_one_that_the_catalogue_generates() -> None:
    assert (DOCS / "anomalies.md").read_text() == anomalies_page()


def test_the_names_that_scenarios_may_expect_are_those_of_the_catalogue() -> None:
    assert (Path(checkers.__file__).parent / "anomalies.txt").read_text() == anomalies_list()


def test_every_module_that_says_what_it_checks_is_in_the_catalogue() -> None:
    folder = Path(checkers.__file__).parent
    saying = [path for path in folder.rglob("*.py") if "\nCHECKS: Final" in path.read_text()]
    assert {len(path.relative_to(folder).parts) for path in saying} == {2}
    said = [one for path in saying for one in re.findall(r' id="(\w+)"', path.read_text())]
    assert set(said) <= {entry.id for entry in CATALOGUE}


def test_names_and_ids_are_unique() -> None:
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)
    assert len({entry.id for entry in CATALOGUE}) == len(CATALOGUE)


def test_a_check_rests_on_assumptions_only() -> None:
    for entry in CATALOGUE:
        assert {*entry.rests_on, *entry.rests_on_zookeeper} <= set(names_of(Kind.ASSUMPTION))


def test_an_entry_says_when_it_is_allowed_if_and_only_if_it_may_be() -> None:
    for entry in CATALOGUE:
        assert bool(entry.allowed_if) == (entry.strength is Strength.ALLOWED_IF)


def test_an_entry_is_found_by_its_name() -> None:
    assert entry_of("lost-write").id == "D1"


def test_a_check_needs_tables_that_there_are_and_is_not_asked_without_them() -> None:
    for entry in CATALOGUE:
        assert set(entry.needs) <= set(TABLES)
        bounds = {entry.bound} - {""}
        assert (entry in asked((), bounds=bounds)) == (not entry.needs)
        assert entry in asked(entry.needs, bounds=bounds)
        assert (entry in asked(entry.needs)) == (not entry.bound)
