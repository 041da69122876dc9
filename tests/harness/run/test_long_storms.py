"""Storms of some minutes in virtual time, in both generations: what a night is to keep.

They stand in for the nights of `make nightly`, and have what tires with length: logs that are cut,
topics that come and go, a nemesis that may fall silent, tables that are judged slice by slice.
"""

from pathlib import Path

import pytest
from commands import Fencepost

from fencepost.checkers.check import check_run
from fencepost.checkers.grounds.decided_span import known_in_sum_until_s
from fencepost.checkers.grounds.topics_alive import topics_alive_in
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity
from fencepost.history.manifest import read_manifest

pytestmark = pytest.mark.slow

MINUTES = ("--time-limit", "4m", "--rate", "60", "--alongside", "--json", "--seed", "31")


@pytest.mark.parametrize(
    ("scenario", "cluster"),
    [("storm", "simulated"), ("reference-zookeeper-storm", "simulated-zookeeper")],
)
def test_a_storm_of_minutes_keeps_what_a_night_is_to_keep(
    fencepost: Fencepost, scenario: str, cluster: str, tmp_path: Path
) -> None:
    ended = fencepost("run", scenario, "--cluster", cluster, *MINUTES, results=tmp_path)
    assert ended.said["validity"] == "valid"
    sliced = check_run(ended.run, session=InProcessTasks(), slice_rows=10_000)
    assert sliced.validity is Validity.VALID
    cases = {one.check: one.case_count for one in sliced.checks}
    assert cases == {name: told["cases"] for name, told in ended.said["checks"].items()}
    assert cases["nonlinearizable-isr"] > 50
    assert known_in_sum_until_s(sliced) == 0
    topics = topics_alive_in(sliced)
    assert topics is not None
    assert topics.end_count <= (topics.promised or 0)
    work = read_manifest(ended.run.manifest_path).nemesis
    assert work is not None
    assert work.idle_s < 60
    assert work.faults_a_minute > 5
