"""What all tests share: skips say what is missing."""

import os

import pytest
from hypothesis import settings

from clusters.hosts.docker.daemon import connected
from clusters.java import find_java
from history.failure import HarnessError

# How long an example takes says more of the machine than of the code.
settings.register_profile("fencepost", deadline=None)
settings.load_profile("fencepost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a JVM where there is none, and say so."""
    java, docker = _missing_java(), _missing_docker()
    for item in items:
        if java and any(item.get_closest_marker(mark) for mark in ("spark", "kafka")):
            item.add_marker(pytest.mark.skip(reason=java))
        if docker and item.get_closest_marker("docker"):
            item.add_marker(pytest.mark.skip(reason=docker))


def _missing_java() -> str | None:
    try:
        find_java()
    except HarnessError as error:
        return f"no Java: {error}"
    return None


def _missing_docker() -> str | None:
    if os.geteuid() != 0:
        return "no containers: their network needs root"
    try:
        connected().__exit__(None, None, None)
    except HarnessError as error:
        return str(error)
    return None
