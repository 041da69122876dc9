"""What a node's log says about its end, in one line."""

import re
from pathlib import Path
from typing import Final

__all__ = ["last_words"]

_TAIL_BYTES: Final = 1 << 18
_WORDS_MAX: Final = 3
_LINE_LENGTH_MAX: Final = 400
_TROUBLE = re.compile(
    r"\b(?:ERROR|FATAL)\b|^Caused by: |^Exception in thread|^Error|^[\w.$]+(?:Exception|Error)\b"
)
_PREFIX = re.compile(r"^\S+ \[[^\]]*\] (?:ERROR|FATAL) ")


def last_words(log: Path, *, since: int = 0) -> str:
    """The last few errors in a log from the byte `since` on; its last lines if it names none."""
    lines = [line.strip() for line in _tail(log, since=since).splitlines()]
    spoken = [line for line in lines if line and not line.startswith("at ")]
    errors = [_PREFIX.sub("", line) for line in spoken if _TROUBLE.search(line)]
    # The same exception is mostly logged by several layers.
    chosen = list(dict.fromkeys(errors or spoken))[-_WORDS_MAX:]
    return " | ".join(line[:_LINE_LENGTH_MAX] for line in chosen) or "the log is empty"


def _tail(log: Path, *, since: int) -> str:
    try:
        with log.open("rb") as content:
            size = content.seek(0, 2)
            content.seek(max(since, size - _TAIL_BYTES))
            return content.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
