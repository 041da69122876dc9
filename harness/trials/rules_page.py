"""The page docs/rules.md: every rule of the documents, with its code, switch, tests and checks.

`python -m fencepost.harness.trials.rules_page` writes it anew, out of the registry (`documents`),
the sources, the names of tests, and docs/selftest.md.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.reference.documents import DOCUMENT_RULES, DOCUMENTS, DocumentRule
from fencepost.clusters.reference.nodes.rules import RULES, ProtocolRule
from fencepost.clusters.reference.zk.rules import ZK_RULES
from fencepost.harness.trials.selftest_page import examples_in

_ROOT: Final = Path(__file__).resolve().parents[2]
_SOURCES: Final = _ROOT / "clusters/reference"
_PAGE: Final = _ROOT / "docs/rules.md"
_SELFTEST: Final = _ROOT / "docs/selftest.md"
_TABLES: Final = frozenset({"rules.py"})
"""Modules that have every switch, and keep none."""
_TESTS_MAX: Final = 3
_MARK: Final = re.compile(r"@pytest\.mark\.rule\([^)]*\)")

SWITCHES: Final[Mapping[str, ProtocolRule]] = {one.name: one for one in (*RULES, *ZK_RULES)}
"""Every switch by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A line of a table: a rule of a document, or a switch of what the documents build upon."""

    name: str
    says: str
    code: tuple[str, ...]
    switches: tuple[str, ...]
    tests: tuple[str, ...]
    checks: tuple[str, ...]
    """By which switch, the check that was seen to find it out first."""
    why: str
    """The reason why it has no switch, or no check."""


def rows() -> list[RuleRow]:
    """Return all lines: the documents' rules in their order, then the other switches."""
    keepers, tests, found = _keepers(), _tests(), _found()
    named = {name for rule in DOCUMENT_RULES for name in rule.switches}
    others = [
        DocumentRule(name, one.says, (name,)) for name, one in SWITCHES.items() if name not in named
    ]
    return [_row(rule, keepers, tests, found) for rule in (*DOCUMENT_RULES, *others)]


def _row(
    rule: DocumentRule,
    keepers: Mapping[str, Sequence[str]],
    tests: Mapping[str, str],
    found: Mapping[str, str],
) -> RuleRow:
    code = [path for name in rule.switches for path in keepers.get(name, ())]
    checks = dict.fromkeys(found[name] for name in rule.switches if name in found)
    unseen = [SWITCHES[name].unseen for name in rule.switches if SWITCHES[name].unseen]
    number = (rule.tests or rule.id).lower()
    of_document = rule.id[0] in DOCUMENTS and rule.id[1:].isdigit()
    words = (f"_{number}_",) if of_document else tuple(f"{one}_" for one in rule.switches)
    return RuleRow(
        name=rule.id,
        says=rule.says,
        code=tuple(dict.fromkeys((*code, *rule.code))),
        switches=rule.switches,
        tests=tuple(_of_rule(tests, words, rule.switches)),
        checks=tuple(checks),
        why="; ".join([*unseen, *([rule.why] if rule.why else [])]),
    )


def _of_rule(
    tests: Mapping[str, str], words: Iterable[str], switches: Iterable[str]
) -> Iterator[str]:
    """Yield the tests that are marked as some switch's or have one of these words in their names.

    Where there are none, those whose code names a switch.
    """
    quoted = [f'"{name}"' for name in switches]
    named = [
        name
        for name, code in tests.items()
        if any(word in f"{name}_" for word in words)
        or any(one in mark for mark in _MARK.findall(code) for one in quoted)
    ]
    yield from named or [name for name, code in tests.items() if any(one in code for one in quoted)]


def _keepers() -> Mapping[str, Sequence[str]]:
    """Return the modules that read each switch, by its name."""
    found: dict[str, list[str]] = {}
    for path in sorted(_SOURCES.rglob("*.py")):
        if path.name in _TABLES:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        read = {one.attr for one in ast.walk(tree) if isinstance(one, ast.Attribute)}
        for name in SWITCHES.keys() & read:
            found.setdefault(name, []).append(str(path.relative_to(_SOURCES)))
    return found


def _tests() -> Mapping[str, str]:
    """Return the source of every test, its decorators included, by its name."""
    found: dict[str, str] = {}
    for path in sorted((_ROOT / "tests").rglob("test_*.py")):
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for one in ast.parse(text).body:
            if isinstance(one, ast.FunctionDef) and one.name.startswith("test_"):
                first = min([one.lineno, *(over.lineno for over in one.decorator_list)])
                found[one.name] = "\n".join(lines[first - 1 : one.end_lineno])
    return found


def _found() -> Mapping[str, str]:
    """Return the check that found each switch out first, as the self-test's page has it."""
    return {example.rule.name: checks[0] for example, checks in examples_in(_SELFTEST)}


_HEAD: Final = """\
# The rules, one by one

The reference cluster implements five documents ([KRaft](reference-cluster.md), [on
ZooKeeper](reference-zookeeper.md)). For each of their rules this page names the module that keeps
it (below `clusters/reference`), the switch that turns it off (`--without-rule`), its tests, and the
checks that were seen to detect that it is off ([selftest.md](selftest.md) has the trials).
Generated by `make docs`.
"""
_COLUMNS: Final = """\
| rule | says | code | switch | tests | found by |
|---|---|---|---|---|---|
"""
_REST: Final = """\

## What they build upon

Switches of rules that no document above has: Kafka's own, and what follows from several.

| switch | says | code | tests | found by |
|---|---|---|---|---|
"""


def rules_page() -> str:
    """Return the page."""
    every = rows()
    text = _HEAD
    for letter, title in DOCUMENTS.items():
        mine = [one for one in every if one.name[0] == letter and one.name[1:].isdigit()]
        text += f"\n## {letter}: {title}\n\n{_COLUMNS}"
        text += "".join(_line(one, switches=True) for one in mine)
    others = [one for one in every if one.name in SWITCHES]
    return text + _REST + "".join(_line(one, switches=False) for one in others)


def _line(row: RuleRow, *, switches: bool) -> str:
    more = len(row.tests) - _TESTS_MAX
    tests = [f"`{name}`" for name in row.tests[:_TESTS_MAX]] + (
        [f"{more} more"] if more > 0 else []
    )
    seen = ", ".join(f"`{name}`" for name in row.checks)
    found = "; ".join(filter(None, (seen, row.why and f"*{row.why.rstrip('.')}*")))
    name = f"`{row.name}`" if row.name in SWITCHES else row.name
    cells = [name, row.says, ", ".join(f"`{one}`" for one in row.code)]
    if switches:
        cells.append(", ".join(f"`{one}`" for one in row.switches) or "none")
    return f"| {' | '.join([*cells, ', '.join(tests), found])} |\n"


if __name__ == "__main__":
    _PAGE.write_text(rules_page(), encoding="utf-8")
    sys.stdout.write(f"{_PAGE}\n")
