"""Packages are imported by one name: what is imported by two exists twice."""

import ast
from collections.abc import Iterator
from pathlib import Path

import fencepost

ROOT = Path(__file__).parents[2]
FOLDERS = {one.name for one in (ROOT / "fencepost").iterdir() if one.is_symlink()}


def test_no_module_is_imported_past_the_root() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for folder in (*sorted(FOLDERS), "tests")
        for path in (ROOT / folder).rglob("*.py")
        for name in _imported(path)
        if name.partition(".")[0] in FOLDERS
    ]
    assert found == []


def test_every_package_at_the_top_is_a_link_in_the_root() -> None:
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"fencepost"}
    assert packages <= FOLDERS
    assert Path(fencepost.__file__).parent.resolve() == ROOT / "fencepost"


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""
        elif isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
