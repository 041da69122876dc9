"""Commands of ours in this process: Spark starts once for all of them."""

from pathlib import Path

import pytest
from commands import Ended, Fencepost

from harness.cli.main import main


@pytest.fixture
def fencepost(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Fencepost:
    """Run `fencepost …`; `results`: where its runs are stored."""

    def call(*arguments: str, results: Path) -> Ended:
        monkeypatch.setenv("FENCEPOST_RESULTS", str(results))
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert isinstance(ended.value.code, int)
        captured = capsys.readouterr()
        return Ended(returncode=ended.value.code, stdout=captured.out, stderr=captured.err)

    return call
