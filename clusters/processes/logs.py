"""The cause of a node's death, as its log tells it, in one line."""

import re
from pathlib import Path
from typing import Final

_TAIL_BYTES: Final = 1 << 20
_WORDS_MAX: Final = 3
_LINE_LENGTH_MAX: Final = 300
_FATAL: Final = re.compile(
    r"\bFATAL\b|\b[Ff]atal (?:fault|error|exception)\b|[Uu]nexpected exception, exiting"
)
"""The words of Kafka's fault handlers and mains, of ZooKeeper's, and of the JVM."""
_LOGGED: Final = re.compile(r"\S+ \[[^\]]*\] (?P<level>[A-Z]+) (?P<message>.*)")


def last_words(log: Path, *, since: int = 0) -> str:
    """Return the first errors in a log from the byte `since` on, and the last one.

    An error is what was logged as such, or was written without the logger: by the JVM, or as the
    head of a stack trace. A process lives on after most errors: where one says that it is fatal,
    those before it did not end the process. If the log has no errors, return the last lines.
    """
    lines = [line.rstrip() for line in _tail(log, since=since).splitlines() if line.strip()]
    fatal = next((at for at, line in enumerate(lines) if _is_fatal(line)), 0)
    lines = lines[fatal:]
    # The same exception is mostly told by several layers.
    errors = list(dict.fromkeys(word for line in lines if (word := _error_in(line))))
    if len(errors) > _WORDS_MAX:
        # The first ones are the cause; the last one is how it ended.
        errors = [*errors[: _WORDS_MAX - 1], errors[-1]]
    chosen = errors or [line.strip() for line in lines[-_WORDS_MAX:]]
    return " | ".join(line[:_LINE_LENGTH_MAX] for line in chosen) or "its log is empty"


def _error_in(line: str) -> str | None:
    if line[0].isspace():  # a frame of a stack trace, or a table of settings
        return None
    logged = _LOGGED.fullmatch(line)
    if logged is None:
        return line
    return logged["message"] if logged["level"] in ("ERROR", "FATAL") else None


def _is_fatal(line: str) -> bool:
    """Return whether a line was logged as a fatal error. The JVM calls any end of its own fatal."""
    logged = _LOGGED.fullmatch(line) is not None
    return logged and _error_in(line) is not None and _FATAL.search(line) is not None


def _tail(log: Path, *, since: int) -> str:
    try:
        with log.open("rb") as content:
            size = content.seek(0, 2)
            content.seek(max(since, size - _TAIL_BYTES))
            return content.read().decode(errors="replace")
    except FileNotFoundError:
        return ""
