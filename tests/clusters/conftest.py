"""What the tests of clusters share: bounded waiting, and a warden."""

from collections.abc import Callable, Iterator

import pytest
import waiting

from fencepost.clusters.hosts.warden import Warden


@pytest.fixture(scope="session")
def until() -> Callable[..., bool]:
    """Wait for a claim to come true; False if it has not within `timeout_s` (60)."""
    return waiting.until


@pytest.fixture
def warden() -> Iterator[Warden]:
    with Warden(run_id="test") as it:
        yield it
