"""What tests of the running proxy share."""

from collections.abc import Iterator

import pytest
from wire_stage import Stage, staged


@pytest.fixture
def stage() -> Iterator[Stage]:
    with staged() as it:
        yield it
