"""The looks of faults, as pages show them: each verb's own."""

from pathlib import Path

import pytest

from fencepost.harness.run import reports
from fencepost.harness.run.reports import LOOKS
from fencepost.history.run_directory import RunDirectory
from fencepost.report.palette import ROLES


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    channels = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("surroundings", ["light", "dark"])
@pytest.mark.parametrize("kind", sorted(kind for kind, look in LOOKS.items() if look.shade))
def test_a_fault_stands_out_from_the_card(kind: str, surroundings: str) -> None:
    shade, card = LOOKS[kind].shade, ROLES["card"]
    low, high = sorted(luminance(getattr(one, surroundings)) for one in (shade, card))
    assert (high + 0.05) / (low + 0.05) >= 2.7, kind


def test_two_faults_of_nodes_have_two_colours_unless_they_are_much_the_same() -> None:
    shades = [look.shade for look in LOOKS.values() if look.shade]
    assert len(shades) - len(set(shades)) == 1  # stop and restart


def test_a_page_is_written_with_the_looks_of_the_verbs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    given: list[object] = []

    def note(run: RunDirectory, *, window: object, looks: object) -> Path:
        given.extend((window, looks))
        return run.report_path

    monkeypatch.setattr(reports.page, "write_page", note)
    reports.write_page(RunDirectory(tmp_path))
    assert given == [None, LOOKS]
    assert LOOKS["kill"].state == "killed"
    assert "start" not in LOOKS
