"""The examples of the how-to pages, to be run: what they show is what a reader types."""

import re
from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

ROOT = Path(__file__).parents[1]
_IN_A_LIST = re.compile(r"(?m)(?:^ {9,}\S.*\n(?:\n(?= {9}))*)+")
"""Code below an entry of a list. Commands for a shell stand further to the left."""


def examples_of(page: str) -> list[str]:
    """The code of a page of docs/, block by block; a page has some."""
    found = _IN_A_LIST.findall((ROOT / "docs" / page).read_text())
    assert found, page
    return [dedent(block) for block in found]


def run_example(code: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """Run a block in a module that has imported these names; return what it has then."""
    module = {"__name__": "example", **names}
    exec(compile(code, "example", "exec"), module)  # pages of ours
    return module
