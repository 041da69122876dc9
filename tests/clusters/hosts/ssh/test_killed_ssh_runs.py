"""A harness on one machine, killed with -9, leaves nothing of its run on the others."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from far_machines import far_machines, inventory_of, why_no_machines
from killed_runs import in_the_middle

SCENARIO = """
name: killed-far
cluster: {controllers: 1, brokers: 2}
topics: [{name: t, replication_factor: 2}]
workload: {kind: produce-poll, rate: 50, producers: 1, consumers: 1, consume: assign}
play:
  - pause: broker-1
  - kill: broker-2
  - wait: 10m
time_limit: 10m
"""


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.skipif(why_no_machines() is not None, reason=str(why_no_machines()))
@pytest.mark.parametrize("warden_too", [False, True], ids=["harness", "harness and warden"])
def test_nothing_of_a_killed_run_is_left_over_there(
    until: Callable[..., bool], tmp_path: Path, *, warden_too: bool
) -> None:
    (tmp_path / "tmp").mkdir()
    scenario = tmp_path / "far.yaml"
    scenario.write_text(SCENARIO)
    with far_machines(2, directory=tmp_path / "machines") as machines:
        inventory = inventory_of(machines, directory=tmp_path)
        with in_the_middle(
            scenario,
            *("--host", "ssh", "--inventory", str(inventory)),
            effects=2,
            temporary=tmp_path / "tmp",
            results=tmp_path / "results",
        ) as run:
            assert _nodes_of(tmp_path)
            run.kill(warden_too=warden_too)
        homes = [Path(str(one.machine.directory)) / "runs" for one in machines]
        assert until(lambda: not [left for home in homes for left in home.iterdir()])
        assert until(lambda: not _nodes_of(tmp_path))
        assert until(lambda: not run.pids())


def _nodes_of(directory: Path) -> list[str]:
    """Processes that name the machines' directory: agents, JVMs and what they started."""
    found = subprocess.run(
        ["pgrep", "--full", "--list-full", f"{directory}/machines/.*/far"],
        check=False,
        capture_output=True,
        text=True,
    )
    return found.stdout.splitlines()
