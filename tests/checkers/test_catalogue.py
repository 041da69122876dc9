"""The catalogue, the checks and the documentation say the same."""

import re
from pathlib import Path

import pytest

from fencepost import checkers
from fencepost.checkers.anomalies_page import anomalies_list, anomalies_page
from fencepost.checkers.catalogue import CATALOGUE, asked, entry_of, names_of
from fencepost.checkers.entry import CatalogueEntry, Kind, Strength
from fencepost.history.schema import TABLES

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_documentation_is_the_one_that_the_catalogue_generates() -> None:
    assert (DOCS / "anomalies.md").read_text() == anomalies_page()


def test_the_names_that_scenarios_may_expect_are_those_of_the_catalogue() -> None:
    assert (Path(checkers.__file__).parent / "anomalies.txt").read_text() == anomalies_list()


def test_every_module_that_says_what_it_checks_is_in_the_catalogue() -> None:
    folder = Path(checkers.__file__).parent
    saying = [path for path in folder.rglob("*.py") if "\nCHECKS: Final" in path.read_text()]
    assert {len(path.relative_to(folder).parts) for path in saying} == {2}
    heads = re.compile(r'^ *(?:""")?([A-Z]\d+[a-z]?) ([a-z0-9-]+): ', re.MULTILINE)
    said = {one for path in saying for one in heads.findall(path.read_text())}
    assert len(said) > len(saying)
    assert said <= {(entry.id, entry.name) for entry in CATALOGUE}


def test_names_and_ids_are_unique() -> None:
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)
    assert len({entry.id for entry in CATALOGUE}) == len(CATALOGUE)


TEXT = """D99 gone: A record
    is gone.

    It is not there
    where it was.

    Sound because it was there.

    Meaning: Nobody reads it.
    Case: a record
    Source: KIP-1; KIP-2
    """


def test_an_entry_is_told_by_one_text() -> None:
    entry = CatalogueEntry.of(TEXT, needs=("records",))
    assert (entry.id, entry.name, entry.title) == ("D99", "gone", "A record is gone")
    assert entry.rule == "It is not there where it was."
    assert (entry.meaning, entry.case, entry.source) == (
        "Nobody reads it.",
        "a record",
        "KIP-1; KIP-2",
    )
    assert (entry.strength, entry.needs) == (Strength.NEVER, ("records",))


def test_what_a_text_allows_is_its_strength() -> None:
    entry = CatalogueEntry.of(TEXT.replace("Case:", "Allowed if: it was\n    deleted\n    Case:"))
    assert (entry.strength, entry.allowed_if) == (Strength.ALLOWED_IF, "it was deleted")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="no text"),
        pytest.param(TEXT.replace("D99 gone: ", ""), id="no id"),
        pytest.param(TEXT.split("\n\n", maxsplit=1)[0], id="a head alone"),
        pytest.param(TEXT.replace("Case: ", "Cases: "), id="a label is not there"),
        pytest.param(TEXT.replace("Case: ", "Source: a book\n    Case: "), id="a label twice"),
        pytest.param(TEXT.replace("Meaning: ", "It is so. \n    Meaning: "), id="a longer end"),
    ],
)
def test_a_text_that_tells_no_entry_is_refused(text: str | None) -> None:
    with pytest.raises(ValueError, match="no entry of the catalogue"):
        CatalogueEntry.of(text)


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
