"""What the tests of a broker's parts share: this folder is on the path for its world."""

from collections.abc import Iterator

import pytest

from fencepost.clusters.node_port import batches, segments


@pytest.fixture(scope="module")
def short_segments() -> Iterator[None]:
    """Have segments of three batches, so that a short log has several; two are folded at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batches, "SEGMENT_BATCHES", 3)
        patch.setattr(segments, "_FOLDED", 2)
        yield
