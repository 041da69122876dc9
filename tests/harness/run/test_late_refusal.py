"""A run that is refused although it was planned leaves no directory."""

import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from fencepost.clusters.systems import REFERENCE
from fencepost.harness.progress import TerminalProgress
from fencepost.harness.run.plan import planned
from fencepost.harness.run.run import run_planned
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.history.failure import UsageError

QUIET = TerminalProgress(Console(quiet=True), None)


def test_a_port_that_is_taken_after_the_plan_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    scenario = load_scenario(find_scenario("smoke"), ())
    options = with_free_ports(
        RunOptions(results=tmp_path, seed=1, command="", cluster=REFERENCE, alongside=True),
        scenario,
    )
    port = options.port_base
    plan = planned(scenario, options, QUIET.say)
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used"):
            planned(scenario, options, QUIET.say)
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used") as raised:
            run_planned(plan, QUIET)
    assert str(tmp_path) not in str(raised.value)
    assert list(tmp_path.iterdir()) == []


def with_free_ports(options: RunOptions, scenario: Scenario) -> RunOptions:
    """The same with a port base of which all ports are free: other tests take some beside it."""
    for _ in range(50):
        with socket.create_server(("127.0.0.1", 0)) as other:
            based = replace(options, port_base=other.getsockname()[1])
        with suppress(UsageError):
            planned(scenario, based, QUIET.say)
            return based
    raise AssertionError("no free ports")
