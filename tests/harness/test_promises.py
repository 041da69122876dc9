"""What clients are promised on nodes of our own."""

from dataclasses import replace

import pytest

from harness.library import find_scenario
from harness.reference import promises_of
from harness.scenario import Scenario, load_scenario


def scenario(level: str | None) -> Scenario:
    found = load_scenario(find_scenario("smoke"), [])
    return replace(found, cluster=replace(found.cluster, metadata_version=level))


@pytest.mark.parametrize(("level", "age_max_ms"), [("1", None), ("2", None), ("3", 0), (None, 0)])
def test_metadata_is_never_old_where_brokers_hide_what_not_all_have(
    level: str | None, age_max_ms: float | None
) -> None:
    promised = promises_of(scenario(level))
    assert promised.metadata_age_max_ms == age_max_ms
    assert promised.leases
    assert replace(promised, leases=False, metadata_age_max_ms=None) == scenario(level).promises
