"""What the tests of clusters share: bounded waiting, and a warden."""

import time
from collections.abc import Callable, Iterator

import pytest

from clusters.hosts.warden import Warden


def _until(claim: Callable[[], bool], *, timeout_s: float = 60.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture(scope="session")
def until() -> Callable[..., bool]:
    """Wait for a claim to come true; False if it has not within `timeout_s` (60)."""
    return _until


@pytest.fixture
def warden() -> Iterator[Warden]:
    with Warden(run_id="test") as it:
        yield it
