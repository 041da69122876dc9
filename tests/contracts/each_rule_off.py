"""A plugin of pytest: for each rule of the protocols, its tests once more, with the rule off.

It takes the place of the usual run, and prints a line a row of docs/rules.md and switch: whether
some test failed. Each switch has a process of its own, forked when all tests are collected.
"""

import json
import os
import sys
from collections import defaultdict

import pytest

from clusters.reference.nodes.rules import Rules
from clusters.reference.zk.rules import ZkRules
from harness.trials.rules_page import RuleRow, rows

SAID = "rule: "


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    items: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in session.items:
        items[getattr(item, "originalname", item.name)].append(item)
    for row in rows():
        mine = [item for name in row.tests for item in items[name]]
        # What is marked as the rule's is the likeliest to fail.
        mine.sort(key=lambda item: item.get_closest_marker("rule") is None)
        for switch in filter(_is_on, row.switches):
            said = {"row": row.name, "switch": switch, "missed": _is_missed(row, switch, mine)}
            sys.stderr.write(SAID + json.dumps(said) + "\n")
    return True


def _is_on(switch: str) -> bool:
    """Whether it is on if nothing is said of it: else every test is one without it."""
    return bool(getattr(ZkRules(), switch, False) or getattr(Rules(), switch, False))


def _is_missed(row: RuleRow, switch: str, items: list[pytest.Item]) -> bool:
    """Whether no test fails once the rule is off by default."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            code = int(_pass_without(switch, items))
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1), f"{row.name}: the tests without {switch} ended with {code}"
    return code == 1


def _pass_without(switch: str, items: list[pytest.Item]) -> bool:
    for rules in (Rules, ZkRules):
        defaults = rules.__init__.__kwdefaults__
        defaults.update(dict.fromkeys({switch} & defaults.keys(), False))
    for item in items:
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
        if item.session.testsfailed:
            return False
    return True
