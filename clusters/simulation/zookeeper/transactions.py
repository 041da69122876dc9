"""The transaction log of an ensemble as values, for tables like those of a real one.

Each server decides entries as it applies them, and keeps no decisions; so they are made here once
more, from the log alone.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from clusters.node_port.zookeeper import Check, Create, Delete, SetData, Write
from clusters.simulation.zookeeper.entries import BeginEpoch, EndSession, LogEntry, StartSession
from clusters.simulation.zookeeper.tree import Applied, Tree, parent_of


@dataclass(frozen=True, slots=True)
class Created:
    """A znode was made."""

    path: str
    data: bytes
    owner: int
    """The session that it ends with; 0: none."""
    parent_created_count: int
    """The children that were ever made under its parent, this one included."""


@dataclass(frozen=True, slots=True)
class Updated:
    """The data of a znode were replaced."""

    path: str
    data: bytes
    version: int
    """The version that this made."""


@dataclass(frozen=True, slots=True)
class Deleted:
    """A znode was removed."""

    path: str


@dataclass(frozen=True, slots=True)
class Checked:
    """A multi's condition was met."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class Started:
    """The session began."""

    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The session ended, and these ephemeral znodes with it."""

    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing happened. Of a multi, the others of a change that was refused have 0 or -2."""

    error: int


Made = Created | Updated | Deleted | Checked | Started | Ended | Refused


@dataclass(frozen=True, slots=True)
class CommittedTransaction:
    """An entry of the log, and what it did."""

    zxid: int
    session: int
    xid: int
    """Its number in the connection."""
    time_ms: int
    """The leader's clock."""
    made: tuple[Made, ...]


def transactions(log: Iterable[LogEntry]) -> Iterator[CommittedTransaction]:
    """Yield the transactions of a log from its first entry on, in order."""
    tree = Tree()
    for entry in log:
        created = _created_counts(tree, entry)
        applied = tree.apply(entry)
        if not isinstance(entry.change, BeginEpoch):
            made = tuple(_made(entry, applied, created))
            yield CommittedTransaction(entry.zxid, entry.session, entry.xid, entry.time_ms, made)


def _created_counts(tree: Tree, entry: LogEntry) -> dict[str, int]:
    """Return how many children were ever made under the znodes that this entry may add to."""
    if isinstance(entry.change, StartSession | EndSession | BeginEpoch):
        return {}
    above = [parent_of(one.path) for one in entry.change if isinstance(one, Create)]
    return {path: tree.znodes[path].created_count for path in above if path in tree.znodes}


def _made(entry: LogEntry, applied: Applied, created: dict[str, int]) -> Iterator[Made]:
    change = entry.change
    if isinstance(change, StartSession):
        yield Started(change.timeout_ms)
    elif isinstance(change, EndSession):
        yield Refused(applied.error) if applied.error else Ended(applied.ended)
    elif applied.error:
        yield from (
            (Refused(one.error) for one in applied.outcomes)
            if applied.outcomes
            else (Refused(applied.error),)
        )
    elif not isinstance(change, BeginEpoch):
        for write, outcome in zip(change, applied.outcomes, strict=True):
            version = 0 if outcome.stat is None else outcome.stat.version
            yield _written(write, outcome.path, version, entry.session, created)


def _written(write: Write, path: str, version: int, session: int, created: dict[str, int]) -> Made:
    if isinstance(write, Create):
        above = parent_of(path)
        created[path] = 0
        created[above] = created.get(above, 0) + 1
        return Created(path, write.data, session if write.ephemeral else 0, created[above])
    if isinstance(write, SetData):
        return Updated(write.path, write.data, version)
    if isinstance(write, Delete):
        return Deleted(write.path)
    assert isinstance(write, Check)
    return Checked(write.path, write.version)
