"""The harness's own knowledge of each node, as tables: its settings, and its log's worst words.

A node's log is prose, and prose is no evidence. A few lines are, since nothing else writes them:
Kafka's fault handlers say "Encountered … fault" (`FaultHandler` in server-common) when something
happened that the code holds impossible: a fatal one ends the process, one of metadata loading,
metadata publishing or the quorum controller leaves it as it is. `BootstrapDirectory` and
`MetaPropertiesEnsemble` say at a start that there is nothing to start from. ZooKeeper says "Unable
to load database on disk", with the exceptions that tell why behind it, and "Digests are not
matching" when a transaction gave its tree another digest than it gave the leader's. The JVM names
an `OutOfMemoryError`, and says when it ends because of one or crashes itself.

Not each such digest is evidence. A leader goes on while it writes its tree for a follower, so the
follower's copy may be ahead of the transactions that it is then given once more: up to the end of
these, digests differ though all is well (`DataTree.compareDigest` knows that of snapshots on disk
only). The follower ends by a snapshot of its own, whose name is that last transaction.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from fencepost.history.clock import Clock
from fencepost.history.journal import RowJournal

_PATTERNS: Final = {
    "fatal-fault": re.compile(rb"Encountered [a-z][a-z ]* fault: |Digests are not matching"),
    "unreadable-disk": re.compile(
        rb"No FeatureLevelRecord for metadata\.version was found in the bootstrap metadata"
        rb"|No readable meta\.properties files found|Unable to load database on disk"
    ),
    "out-of-memory": re.compile(rb"java\.lang\.OutOfMemoryError"),
    "jvm-crash": re.compile(rb"A fatal error has been detected by the Java Runtime Environment"),
}
SILENT: Final = "silent"
"""The finding of a node that logged nothing."""
_LOAD: Final = b"Unable to load database on disk"
_ANY: Final = re.compile(b"|".join(pattern.pattern for pattern in _PATTERNS.values()))
_STAMP: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(?= )")
_DIGESTS: Final = re.compile(rb"Digests are not matching\..*?alue:(\d+)")
_GETS_SNAPSHOT: Final = b"Getting a snapshot from leader"
_SNAPSHOT: Final = re.compile(rb"Snapshotting: 0x([0-9a-f]+)")
_TEXT_LENGTH_MAX: Final = 300
_FINDINGS_MAX: Final = 1000
"""The most findings of one file: a JVM out of memory may say so for as long as it lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFinding:
    """A line of a log that says that its process is in trouble for good."""

    line: int
    """The number of the line, from 1 on."""
    logged_ns: int | None
    """The time by the wall clock, ns since 1970; None if the line does not say."""
    finding: str
    text: str


def findings_in(log: Path) -> Iterator[LogFinding]:
    """The findings of a log, at most a thousand. A log that is not there has none."""
    try:
        with log.open("rb") as lines:
            found = (
                (number, line)
                for number, line in _with_causes(_without_given_twice(enumerate(lines, 1)))
                if _ANY.search(line)
            )
            for count, (number, line) in enumerate(found):
                if count >= _FINDINGS_MAX:
                    return
                yield _finding(number, line)
    except FileNotFoundError:
        return


def write_settings(
    raw: Path,
    settings: Mapping[str, Mapping[str, str]],
    changes: Iterable[tuple[int, str, Mapping[str, str]]] = (),
) -> None:
    """Record `node_settings`: what each node was given at first. Rows by node and name.

    `changes`: (time in ns, node, the properties that it was given anew), in order.
    """
    with RowJournal(raw, "node_settings") as journal:
        for node, own in settings.items():
            for name, value in sorted(own.items()):
                journal.add({"node": node, "name": name, "value": value})
        for since_ns, node, given in changes:
            for name, value in sorted(given.items()):
                journal.add({"node": node, "name": name, "value": value, "since_ns": since_ns})


def write_log_findings(
    raw: Path,
    logs: Mapping[str, Iterable[Path]],
    *,
    clock: Clock,
    skewed: Collection[str] = (),
) -> None:
    """Record `log_findings` of the logs of each node, in the order of nodes, files and lines.

    A node that ran and logged nothing has a row that says so: it may have been in any trouble.

    `skewed`: nodes whose clocks were put wrong, whose lines do not say when they were written.
    """
    run_time_ns = _run_time(clock)
    with RowJournal(raw, "log_findings") as journal:
        for node, files in logs.items():
            written = [file for file in files if file.is_file()]
            if written and not any(file.stat().st_size for file in written):
                words = "it logged nothing at all"
                row = {"node": node, "file": written[0].name, "line": 0, "time_ns": None}
                journal.add(row | {"finding": SILENT, "text": words})
            for file in written:
                for one in findings_in(file):
                    journal.add(
                        {
                            "node": node,
                            "file": file.name,
                            "line": one.line,
                            "time_ns": None
                            if one.logged_ns is None or node in skewed
                            else run_time_ns(one.logged_ns),
                            "finding": one.finding,
                            "text": one.text,
                        }
                    )


def _without_given_twice(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines, but those about digests of transactions that a snapshot held already."""
    receives, last_zxid = False, -1
    for number, line in lines:
        if _GETS_SNAPSHOT in line:
            receives = True
        elif snapshot := _SNAPSHOT.search(line):
            receives, last_zxid = False, int(snapshot[1], 16)
        differs = _DIGESTS.search(line)
        if differs is None or not (receives or int(differs[1]) <= last_zxid):
            yield number, line


def _with_causes(lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the lines; one that says that a database cannot be loaded with its exceptions."""
    failed: tuple[int, bytes] | None = None
    for number, line in lines:
        if failed is not None and _STAMP.match(line):
            yield failed
            failed = None
        if _LOAD in line:
            failed = number, line
            continue
        if failed is not None and not line.startswith(b"\t"):
            failed = failed[0], failed[1].rstrip() + b" | " + line
        yield number, line
    if failed is not None:
        yield failed


def _finding(number: int, line: bytes) -> LogFinding:
    kind = next(name for name, pattern in _PATTERNS.items() if pattern.search(line))
    stamp = _STAMP.match(line)
    return LogFinding(
        line=number,
        logged_ns=None if stamp is None else _since_1970_ns(stamp[0].decode()),
        finding=kind,
        text=line.decode(errors="replace").strip()[:_TEXT_LENGTH_MAX],
    )


def _since_1970_ns(stamp: str) -> int:
    """Return the ns of a local time: nodes log in the time zone of the machine."""
    moment = datetime.fromisoformat(stamp).astimezone(UTC)
    return int(moment.timestamp() * 1000) * 1_000_000


def _run_time(clock: Clock) -> Callable[[int], int]:
    behind_ns = time.time_ns() - clock.now_ns()
    return lambda since_1970_ns: since_1970_ns - behind_ns
