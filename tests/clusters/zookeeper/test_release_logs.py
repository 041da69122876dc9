"""Each release of ZooKeeper has a back end for its log, so that it says what befalls it."""

from pathlib import Path

import pytest

from fencepost.clusters.provision.maven import Coordinates
from fencepost.clusters.zookeeper.releases import _lacking


def jars(*names: str) -> list[Path]:
    return [Path(f"{name}.jar") for name in ("zookeeper-3.9.3", *names)]


@pytest.mark.parametrize(
    "back_end",
    ["logback-classic-1.2.13", "slf4j-log4j12-1.7.25", "log4j-slf4j2-impl-2.25.4"],
)
def test_a_release_that_brings_one_keeps_it(back_end: str) -> None:
    assert _lacking(jars("slf4j-api-1.7.30", back_end)) == ()


def test_one_that_brings_none_gets_the_one_of_its_facade() -> None:
    [given] = _lacking(jars("slf4j-api-1.7.35"))
    assert given == Coordinates(organisation="org.slf4j", name="slf4j-simple", revision="1.7.35")
