"""`docs/errors.md`, drawn from the registry by `python -m fencepost.history.errors_page`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from fencepost.history.errors import Definite, ErrorEntry, ErrorSystem, registry

_HEAD: Final = """\
# Errors

An operation that ended with an error either surely did not happen (*fail*) or may have happened
(*info*). Fail needs proof: the list below says what each error proves about a record that was to be
produced. A code that is not in the list proves nothing. When in doubt, it is info. Generated from
`history/errors.toml` by `python -m fencepost.history.errors_page`; do not edit.

- A refusal by the produce call itself is always *fail*: the record was never queued.
- librdkafka repeats a send inside, uncounted, even with `message.send.max.retries=0`, so an error
  that is definite for a single attempt is *info* under librdkafka.
- With `acks=all`, `NOT_LEADER_OR_FOLLOWER`, `UNKNOWN_TOPIC_OR_PARTITION` and `KAFKA_STORAGE_ERROR`
  are also the answer to a record that was appended first, so they prove nothing at all.
- An error of a poll is *info*: a poll changes nothing, so nothing hangs on the difference.
- A change of the cluster's metadata (a topic, a setting, a move) has a list of its own, which
  stands last: what is not in it proves nothing of such a change.
"""

_TITLES: Final = {
    Definite.ALWAYS: "Always definite: the record never left the client",
    Definite.SINGLE_ATTEMPT: "Definite for a single attempt: the broker refused before the append",
    Definite.NEVER: "Never definite: the record may have been appended",
}


def errors_page() -> str:
    """Return the page, as Markdown."""
    sections = (_section(definite) for definite in Definite)
    return "\n".join([_HEAD, *sections, _of_zookeeper(), _of_metadata()])


def _section(definite: Definite) -> str:
    entries = [entry for entry in registry().values() if entry.definite is definite]
    return _table(_TITLES[definite], entries)


def _of_zookeeper() -> str:
    entries = registry(ErrorSystem.ZOOKEEPER).values()
    definite = [entry for entry in entries if entry.definite is Definite.ALWAYS]
    others = [entry for entry in entries if entry.definite is not Definite.ALWAYS]
    return "\n".join(
        [
            _table("ZooKeeper: the write was refused, and says what was there", definite),
            _table("ZooKeeper: the write may have been carried out", others),
        ]
    )


def _of_metadata() -> str:
    entries = registry(ErrorSystem.METADATA).values()
    return _table("Changes of metadata: refused, and nothing was changed", entries)


def _table(title: str, entries: Iterable[ErrorEntry]) -> str:
    rows = [_row(entry) for entry in sorted(entries, key=lambda entry: entry.code)]
    head = ["| code | name | meaning | source |", "|---|---|---|---|"]
    return "\n".join([f"## {title}", "", *head, *rows, ""])


def _row(entry: ErrorEntry) -> str:
    return f"| {entry.code} | `{entry.name}` | {entry.meaning} | {entry.source} |"


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
    target.write_text(errors_page())
    sys.stdout.write(f"{target}\n")
