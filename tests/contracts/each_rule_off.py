"""A plugin of pytest: for each rule of the protocols, its tests once more, with the rule off.

It takes the place of the usual run, and prints a line a row of docs/rules.md and switch: whether
some test failed. Each test has a process of its own, forked when all are collected; one that
fails is run with the rule as well, and has to pass.
"""

import json
import os
import sys
from collections import defaultdict

import pytest

from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.harness.trials.rules_page import RuleRow, rows

SAID = "rule: "


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    items: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in session.items:
        items[getattr(item, "originalname", item.name)].append(item)
    for row in rows():
        mine = [item for name in row.tests for item in items[name]]
        # A test that is marked as the rule's is the likeliest to fail.
        mine.sort(key=lambda item: item.get_closest_marker("rule") is None)
        for switch in filter(is_on_by_default, row.switches):
            said = {"row": row.name, "switch": switch, "missed": _is_missed(row, switch, mine)}
            sys.stderr.write(SAID + json.dumps(said) + "\n")
    return True


def is_on_by_default(switch: str) -> bool:
    """Whether it is on if nothing is said of it: else every test is one without it."""
    return bool(getattr(ZkRules(), switch, False) or getattr(Rules(), switch, False))


def _is_missed(row: RuleRow, switch: str, items: list[pytest.Item]) -> bool:
    """Whether each test passes once the rule is off by default, or fails in any case."""
    for item in items:
        if not _passes(item, without={switch}):
            assert _passes(item, without=set()), f"{row.name}: {item.nodeid} fails with the rule"
            return False
    return True


def _passes(item: pytest.Item, *, without: set[str]) -> bool:
    """Whether a test passes in a process of its own."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            for rules in (Rules, ZkRules):
                defaults = rules.__init__.__kwdefaults__
                defaults.update(dict.fromkeys(without & defaults.keys(), False))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
            code = min(item.session.testsfailed, 1)
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1), f"{item.nodeid} ended with {code}"
    return code == 0
