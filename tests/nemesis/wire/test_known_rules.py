"""Which rules a wire tells of: those that are laid, and the last that were."""

from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import Match, Rule, Watch


def _lay(book: Rulebook[object], name: str) -> None:
    book.add(Rule(name=name, action=Watch(), match=Match()))


def test_what_was_lifted_is_known_for_a_while_and_what_is_laid_for_as_long_as_it_is() -> None:
    book = Rulebook[object]()
    _lay(book, "stays")
    for number in range(300):
        _lay(book, f"mix-{number}")
        book.remove(f"mix-{number}")

    assert list(book.statuses()) == ["stays", *(f"mix-{number}" for number in range(44, 300))]
    book.remove("mix-7")
    assert len(book.statuses()) == 257


def test_a_name_that_is_laid_again_is_known_as_the_later_rule_alone() -> None:
    book = Rulebook[object]()
    for _ in range(2):
        for number in range(200):
            _lay(book, f"mix-{number}")
            book.remove(f"mix-{number}")
    _lay(book, "mix-0")

    assert list(book.statuses())[-1] == "mix-0"
    assert len(book.statuses()) == 200
    for number in range(300):
        _lay(book, f"more-{number}")
        book.remove(f"more-{number}")
    assert "mix-0" in book.statuses()
