"""A download that is told while it comes."""

import re
import threading
from pathlib import Path

import pytest

from fencepost.clusters.provision.growth import growth_told


def test_what_came_is_told_on_the_way_and_at_the_end(tmp_path: Path) -> None:
    lines: list[str] = []
    heard = threading.Event()

    def progress(line: str) -> None:
        lines.append(line)
        heard.set()

    with growth_told(tmp_path, doing="fetching Kafka 3.4.1", progress=progress, every_s=0.01):
        (tmp_path / "cache").mkdir()
        (tmp_path / "cache" / "kafka.jar.part").write_bytes(b"x" * 2_500_000)
        heard.clear()
        assert heard.wait(10)
        heard.clear()
        assert heard.wait(10)
    assert any(re.fullmatch(r"fetching Kafka 3.4.1: 2.5 MB, [\d.]+ MB/s", one) for one in lines)
    assert re.fullmatch(r"fetching Kafka 3.4.1: 2.5 MB, .* MB/s, done after 0 s", lines[-1])


def test_a_fetch_that_failed_is_not_said_to_be_done(tmp_path: Path) -> None:
    lines: list[str] = []
    with (
        pytest.raises(OSError, match="refused"),
        growth_told(tmp_path, doing="fetching", progress=lines.append),
    ):
        raise OSError("refused")
    assert lines == []
