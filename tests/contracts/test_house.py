"""The house: modules and functions of a size that is read at once, and tests where one looks.

Lists of exceptions may shrink and not grow: what is on one and need not be any more fails, too.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests"
PACKAGES = tuple(
    sorted(one.name for one in (ROOT / "fencepost").iterdir() if (one / "__init__.py").exists())
)
MODULE_LINES_MEDIAN_MAX = 150
MODULE_LINES_USUAL = 400
MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 50
"""Of what it does: its parameters and its docstring are read beside it."""

LONG_MODULES = {
    "clusters/reference/nodes/control/active.py": "what the active controller does at each event",
    "clusters/simulation/world.py": "the loop of events, whose order is one thing",
}
"""Modules above the usual, and the reason: what a reader would have to read together anyway."""
LONGER_FUNCTIONS: set[str] = set()
UNTESTED_ALONE = {
    "clusters/node_port": "the border: every node and every shell is tested by it",
    "clusters/reference/nodes/messages": "values: the codec's round trips have each of them",
    "harness/virtual": "what both kinds of worlds in virtual time share: tested by their runs",
}
"""Packages whose modules are reached through others alone, and through which."""


def test_most_modules_are_short_and_those_that_are_long_say_why() -> None:
    """A limit for each would have a module cut where a number ends, and not where an idea does."""
    lines = {path.relative_to(ROOT).as_posix(): _line_count(path) for path in _modules()}
    own = [count for name, count in lines.items() if not name.endswith("__init__.py")]
    assert median(own) <= MODULE_LINES_MEDIAN_MAX
    assert max(own) <= MODULE_LINES_MAX
    assert {name for name, count in lines.items() if count > MODULE_LINES_USUAL} == set(
        LONG_MODULES
    )


def test_functions_are_read_at_once() -> None:
    assert set(_long_functions()) == LONGER_FUNCTIONS


def test_every_package_has_its_tests_at_the_same_path() -> None:
    untested = {one for one in _packages() if not list((TESTS / one).glob("test_*.py"))}
    assert untested == set(UNTESTED_ALONE)


def test_every_test_stands_in_the_folder_of_a_package() -> None:
    folders = {path.parent.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")}
    assert folders - set(_packages()) == {"contracts"}


def test_a_program_begins_once_all_of_its_module_is_defined() -> None:
    """A definition below `if __name__ == "__main__"` is there for importers alone."""
    assert [path for path in _modules() if _begins_early(path.read_text(encoding="utf-8"))] == []


def test_no_two_modules_of_tests_have_one_name() -> None:
    """Folders of tests are no packages: each module is imported by its name alone."""
    names = Counter(path.name for path in TESTS.rglob("*.py") if path.name != "conftest.py")
    assert [name for name, count in names.items() if count > 1] == []


def _modules() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def _begins_early(text: str) -> bool:
    return any(
        isinstance(one, ast.If) and ast.unparse(one.test).startswith("__name__ ==")
        for one in ast.parse(text).body[:-1]
    )


def _packages() -> list[str]:
    """Those with modules of their own."""
    modules = (path for path in _modules() if path.name != "__init__.py")
    return sorted({path.parent.relative_to(ROOT).as_posix() for path in modules})


def _line_count(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _long_functions() -> Iterator[str]:
    for path in _modules():
        name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[ast.get_docstring(node) is not None :] or node.body
                assert node.end_lineno is not None
                if node.end_lineno - body[0].lineno >= FUNCTION_LINES_MAX:
                    yield f"{name}: {node.name}"
