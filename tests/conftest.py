"""What all tests share: JVM-heavy tests run one after the other, and skips say what is missing."""

import pytest

from clusters.java import find_java
from history.failure import HarnessError


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Real clusters and Spark share one xdist worker: side by side they would starve each other."""
    missing = _missing_java()
    for item in items:
        heavy = [mark for mark in ("spark", "kafka") if item.get_closest_marker(mark)]
        if heavy:
            item.add_marker(pytest.mark.xdist_group("jvm"))
        if heavy and missing:
            item.add_marker(pytest.mark.skip(reason=missing))


def _missing_java() -> str | None:
    try:
        find_java()
    except HarnessError as error:
        return f"no Java: {error}"
    return None
