"""How much of a download is there, and how fast it comes: told while another process fetches."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import Progress

_EVERY_S: Final = 5.0
_MB: Final = 1e6


@contextmanager
def growth_told(
    directory: Path, *, doing: str, progress: Progress, every_s: float = _EVERY_S
) -> Iterator[None]:
    """Tell every few seconds, and at the end, how many MB the files below the directory hold.

    `doing`: "fetching Kafka 3.4.1". The rate is that since the last time, at the end that of all.
    """
    ended = threading.Event()
    begin_s = time.monotonic()

    def watch() -> None:
        before, before_s = 0, begin_s
        while not ended.wait(every_s):
            now, now_s = _bytes_below(directory), time.monotonic()
            progress(f"{doing}: {_words(now, now - before, now_s - before_s)}")
            before, before_s = now, now_s

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    size, took_s = _bytes_below(directory), time.monotonic() - begin_s
    progress(f"{doing}: {_words(size, size, took_s)}, done after {took_s:.0f} s")


def _words(size: int, grown: int, seconds: float) -> str:
    return f"{size / _MB:.1f} MB, {grown / _MB / max(seconds, 1e-3):.1f} MB/s"


def _bytes_below(directory: Path) -> int:
    """Return the bytes of all files; one that is moved meanwhile counts at its other place."""
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue
    return total
