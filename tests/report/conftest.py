"""What tests of a page's parts share."""

import pytest

from fencepost.report import page


@pytest.fixture
def without_plots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages as of a run whose history is not there: drawing it takes most of a page's time."""
    monkeypatch.setattr(page, "_has_history", lambda _: False)
