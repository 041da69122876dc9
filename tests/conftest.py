"""What all tests share: skips say what is missing."""

import pytest
from hypothesis import settings

from clusters.java import find_java
from history.failure import HarnessError

# How long an example takes says more of the machine than of the code.
settings.register_profile("fencepost", deadline=None)
settings.load_profile("fencepost")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a JVM where there is none, and say so."""
    missing = _missing_java()
    for item in items:
        if missing and any(item.get_closest_marker(mark) for mark in ("spark", "kafka")):
            item.add_marker(pytest.mark.skip(reason=missing))


def _missing_java() -> str | None:
    try:
        find_java()
    except HarnessError as error:
        return f"no Java: {error}"
    return None
