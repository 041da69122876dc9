"""The registry of errors: what an error code proves about the record that it was given for.

`errors.toml` is the list, with the reasons; this reads it once, when the first error is met, so
that importing costs a client nothing. A code that is not in the list proves nothing.

A record that a produce *call* refuses (raises, or marks in its batch) was never queued, whatever
the code: the caller knows that better than any list, and records it as fail. The list is for the
codes of delivery reports and answers.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Final

from fencepost.history.operation import Outcome

ATTEMPTS_UNBOUNDED: Final = 1 << 31
"""For a client that repeats as it likes, such as librdkafka with whatever settings: with
`message.send.max.retries=0` it still repeats, uncounted, after each error that makes it ask for new
metadata (rd_kafka_handle_Produce_error), and the first of these, NOT_LEADER_OR_FOLLOWER, can come
after the append."""

_NONE: Final = "NONE"


class ErrorSystem(StrEnum):
    """A system with codes of its own."""

    KAFKA = "kafka"
    METADATA = "metadata"
    """Kafka's, as answers to a change of the cluster's metadata."""
    ZOOKEEPER = "zookeeper"


class Definite(StrEnum):
    """The condition under which an error proves that the record was not appended."""

    ALWAYS = "always"
    SINGLE_ATTEMPT = "single-attempt"
    NEVER = "never"


_TABLES: Final = {
    ErrorSystem.KAFKA: "error",
    ErrorSystem.METADATA: "metadata",
    ErrorSystem.ZOOKEEPER: "zookeeper",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorEntry:
    """One error that a client can meet."""

    name: str
    """The name: the system's for its own, librdkafka's for the negative codes of Kafka's."""
    code: int
    definite: Definite
    meaning: str
    source: str


def outcome_of(code: int, *, attempts_max: int, system: ErrorSystem = ErrorSystem.KAFKA) -> Outcome:
    """Return what the code, 0 for success, says of a record sent at most `attempts_max` times."""
    if code == 0:
        return Outcome.OK
    entry = registry(system).get(code)
    definite = Definite.NEVER if entry is None else entry.definite
    if definite is Definite.ALWAYS or (definite is Definite.SINGLE_ATTEMPT and attempts_max == 1):
        return Outcome.FAIL
    return Outcome.INFO


def name_of(code: int, *, system: ErrorSystem = ErrorSystem.KAFKA) -> str:
    """Return the error's name; of a code that is not in the list, `ERROR_<code>`."""
    if code == 0:
        return _NONE
    entry = registry(system).get(code)
    return f"ERROR_{code}" if entry is None else entry.name


@cache
def registry(system: ErrorSystem = ErrorSystem.KAFKA) -> Mapping[int, ErrorEntry]:
    """Return every error of a system in the list, by code, in the list's order."""
    content = tomllib.loads(files("fencepost.history").joinpath("errors.toml").read_text())
    entries = [
        ErrorEntry(**item | {"definite": Definite(item["definite"])})
        for item in content[_TABLES[system]]
    ]
    by_code = {entry.code: entry for entry in entries}
    assert len(by_code) == len(entries), "a code stands twice in errors.toml"
    assert len({entry.name for entry in entries}) == len(entries), "a name stands twice"
    return by_code
