"""A run that is refused although it was planned leaves no directory."""

import socket
from pathlib import Path

import pytest
from rich.console import Console

from clusters.systems import REFERENCE
from harness.progress import TerminalProgress
from harness.run.plan import planned
from harness.run.run import run_planned
from harness.scenario.options import RunOptions
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import find_scenario
from history.failure import UsageError

QUIET = TerminalProgress(Console(quiet=True), None)


def test_a_port_that_is_taken_after_the_plan_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    options = RunOptions(
        results=tmp_path,
        seed=1,
        command="",
        cluster=REFERENCE,
        alongside=True,
        port_base=port,
    )
    scenario = load_scenario(find_scenario("smoke"), ())
    plan = planned(scenario, options, QUIET.say)
    with socket.create_server(("127.0.0.1", port)):
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used"):
            planned(scenario, options, QUIET.say)
        with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 cannot be used") as raised:
            run_planned(plan, QUIET)
    assert str(tmp_path) not in str(raised.value)
    assert list(tmp_path.iterdir()) == []
