"""The check that `docs/add-a-check.md` adds is one: its file and its tests run as they stand."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

from fencepost.checkers.table_check import TableCheck

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add-a-check.md"
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
NAME = "fencepost.checkers.control_plane.repeated_replica"


def test_the_page_adds_a_check_that_its_own_tests_hold_to(monkeypatch: pytest.MonkeyPatch) -> None:
    check, tests = BLOCK.findall(PAGE.read_text())
    added = ModuleType(NAME)
    run(check, added.__dict__)
    (listed,) = added.__dict__["CHECKS"]
    assert isinstance(listed, TableCheck)
    assert listed.entry.name == "repeated-replica"
    monkeypatch.setitem(sys.modules, NAME, added)
    names = run(tests, {})
    called = [test() for name, test in names.items() if name.startswith("test_")]
    assert len(called) > 1


def run(code: str, names: dict[str, Any]) -> Mapping[str, Any]:
    """The names that an indented block of code defines."""
    exec(compile(dedent(code), PAGE.name, "exec"), names)
    return names
