"""`fencepost report --window`: which part of a run its sequence picture shows."""

from pathlib import Path

import pytest

from fencepost.harness.cli.main import main
from fencepost.harness.run import reports
from fencepost.history.run_directory import RunDirectory
from fencepost.report.sequence import Window


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("10s..25s", Window(from_ns=10_000_000_000, to_ns=25_000_000_000)),
        ("500ms..1m", Window(from_ns=500_000_000, to_ns=60_000_000_000)),
        ("3..3", Window(from_ns=3_000_000_000, to_ns=3_000_000_000)),
    ],
)
def test_a_window_is_two_durations(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    window: Window,
) -> None:
    asked: list[Window | None] = []

    def note(run: RunDirectory, *, window: Window | None) -> None:
        del run
        asked.append(window)

    monkeypatch.setattr(reports, "write_reports", note)
    (tmp_path / "manifest.json").write_text("{}")
    assert call(capsys, "report", str(tmp_path), "--window", text) == (0, "")
    assert asked == [window]


@pytest.mark.parametrize("text", ["10s", "25s..10s", "soon..later", "..", "10s.."])
def test_what_is_no_window_is_wrong_use(capsys: pytest.CaptureFixture[str], text: str) -> None:
    code, err = call(capsys, "report", "latest", "--window", text)
    assert code == 254
    assert "--window" in err
    assert err.count("\n") == 1
