"""Comparison of the disks of an ensemble's servers, once all of them have stopped.

Disks do not show what servers held in memory alone: the final reads of clients see that.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

_ALLOWED: Final = "the run put an old copy of a disk into its place, or changed a bit on a disk"

TRANSACTION_ENTRY: Final = CatalogueEntry.of(
    """Z7 divergent-transaction: Servers logged different transactions of one zxid.

    The transaction logs hold two transactions of one zxid that differ in their session, request,
    time, type or content.

    A zxid has the epoch of its leader in its upper half, and a leader proposes each zxid once. So
    no election explains that, whatever was committed.

    Meaning: Two leaders led one epoch, or one forgot what it had proposed: the servers do not agree
    on the order of changes.
    Case: a zxid in the logs of two servers
    Source: Junqueira, Reed, Serafini 2011 (Zab: primary integrity, total order)
    """,
    nearness=Nearness.LOG,
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED,
    needs=("transaction_log",),
)
TRANSACTION: Final = TRANSACTION_ENTRY.name
TREE_ENTRY: Final = CatalogueEntry.of(
    """Z8 divergent-tree: Servers have different trees.

    Of the servers whose current epoch is the newest, two would restore a znode with different data,
    permissions, versions, zxids, times or owners, or only one would restore it; up to the last
    transaction that all of them have, and without what lies below /zookeeper.

    In one epoch each server has a beginning of what its leader proposed, and one may have more of
    it than another. So they are compared up to the least of their ends: a path that a later
    transaction of any of them touches is left out, with its parent, whose counters it changes.
    Servers of an earlier epoch never heard of the end of the run, and say nothing. `/zookeeper/` is
    left out, as ZooKeeper's own digest of a tree does: there, servers write on their own.

    Meaning: Clients are shown one state or another, by the server that they use, and for good: no
    later transaction makes the trees equal.
    Case: a path that is compared
    Source: ZooKeeper Internals, Consistency Guarantees;
    `org.apache.zookeeper.server.DigestCalculator`
    """,
    nearness=Nearness.LOG,
    strength=Strength.ALLOWED_IF,
    allowed_if=_ALLOWED,
    needs=("server_disks", "transaction_log", "znodes"),
)
TREE: Final = TREE_ENTRY.name
ORPHAN_ENTRY: Final = CatalogueEntry.of(
    """Z9 orphan-ephemeral: An ephemeral znode outlived its session.

    A server would restore an ephemeral znode, and its session is not among those that it would
    restore as open.

    A session and its ephemeral znodes end in one transaction, so a session that ended with some is
    a case, too.

    Meaning: A lock or a membership is kept for a client that is gone.
    Case: an ephemeral znode on a server, or a session with some whose end it logged
    Source: ZooKeeper Programmer's Guide, Ephemeral Nodes; ZOOKEEPER-2355
    """,
    nearness=Nearness.LOG,
    needs=("znodes", "transaction_log"),
)
ORPHAN: Final = ORPHAN_ENTRY.name

_ENSEMBLE: Final = "ensemble"
"""The key of what concerns all servers."""
_OWN: Final = "/zookeeper/"
_COMPARED: Final = (
    *("digest", "acl", "version", "cversion", "aversion", "czxid", "mzxid", "pzxid"),
    *("ctime_ms", "mtime_ms", "ephemeral_owner"),
)
_IDS: Final = frozenset({"czxid", "mzxid", "pzxid", "ephemeral_owner"})
_CHANGED: Final = frozenset({"rollback", "flip_bit"})
"""The faults after which a disk holds what its server never wrote last."""

_OF_TRANSACTIONS: Final = ("item", "zxid", "node", "digest", "type", "path", "session", "cxid")

_Row = Mapping[str, Any]


def divergent_transactions(tables: Tables, _: MetadataView) -> Judged:
    """Find zxids of several transactions. Reads `transaction_log` and `faults`."""
    log = streamed(tables, "transaction_log")
    shared_count, several = _told_twice(log)
    rows = [
        row
        for batch in _first_items(log, _OF_TRANSACTIONS)
        for row in batch.filter(pc.is_in(batch.column("zxid"), pa.array(several))).to_pylist()
    ]
    rows.sort(key=itemgetter("zxid", "node"))
    proofs = [_two(list(same)) for _, same in groupby(rows, key=itemgetter("zxid"))]
    allowed = len(proofs) if _disks_changed(tables) else 0
    yield (
        _ENSEMBLE,
        spelled(TRANSACTION, _ENSEMBLE, proofs, cases=shared_count, allowed_count=allowed),
    )


def _told_twice(log: Source) -> tuple[int, NDArray[np.int64]]:
    """Return how many transactions are in several logs, and the zxids that are several of them.

    As numbers: a night has half a million transactions, on each of three servers.
    """
    nodes: dict[str, int] = {}
    parts = [np.empty((0, 3), dtype=np.int64)]
    for batch in _first_items(log, ("item", "zxid", "digest", "node")):
        names = batch.column("node").dictionary_encode()
        known = [nodes.setdefault(one, len(nodes)) for one in names.dictionary.to_pylist()]
        zxid, digest = (batch.column(name).to_numpy() for name in ("zxid", "digest"))
        parts.append(np.column_stack([zxid, np.array(known)[names.indices.to_numpy()], digest]))
    rows = np.concatenate(parts)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(rows[:, 0], prepend=-1))
    differs = (
        np.maximum.reduceat(column, starts) != np.minimum.reduceat(column, starts)
        for column in rows.T[1:]
    )
    shared, unlike = differs if len(starts) else (np.zeros(0, dtype=bool),) * 2
    return int(np.count_nonzero(shared)), rows[starts[unlike], 0]


def _first_items(log: Source, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows that stand for their transactions, batch by batch."""
    for batch in log(columns):
        first = batch.filter(pc.equal(batch.column("item"), 0))
        if first.num_rows:
            yield first


def divergent_trees(tables: Tables, _: MetadataView) -> Judged:
    """Compare the trees. Reads `server_disks`, `znodes`, `transaction_log` and `faults`."""
    members = _members(tables["server_disks"])
    if len(members) < 2:  # noqa: PLR2004 -- nothing to compare
        return
    common = min(members.values())
    names = pa.array(sorted(members), pa.string())
    log, znodes = tables["transaction_log"], tables["znodes"]
    later = log.filter(
        pc.and_(pc.is_in(log["node"], names), pc.greater(log["zxid"], common))
    ).to_pylist()
    kept = znodes.filter(
        pc.and_(
            pc.is_in(znodes["node"], names),
            pc.invert(pc.starts_with(znodes["path"], pattern=_OWN)),
        )
    )
    touched = pa.array(sorted(_touched(later, kept)), pa.string())
    kept = kept.filter(pc.invert(pc.is_in(kept["path"], touched)))
    by_path = kept.group_by("path").aggregate(
        [("node", "count"), *((name, "count_distinct") for name in _COMPARED)]
    )
    differs = pc.not_equal(by_path["node_count"], len(members))
    for name in _COMPARED:
        differs = pc.or_(differs, pc.greater(by_path[f"{name}_count_distinct"], 1))
    found = kept.join(by_path.filter(differs).select(["path"]), "path", join_type="left semi")
    rows = sorted(found.to_pylist(), key=itemgetter("path", "node"))
    proofs = [
        _unlike(path, {row["node"]: row for row in same}, sorted(members), common)
        for path, same in groupby(rows, key=itemgetter("path"))
    ]
    allowed = len(proofs) if _disks_changed(tables) else 0
    yield _ENSEMBLE, spelled(TREE, _ENSEMBLE, proofs, cases=len(by_path), allowed_count=allowed)


def orphan_ephemerals(tables: Tables, _: MetadataView) -> Judged:
    """Find ephemeral znodes without their sessions, by server.

    Reads `znodes` and `transaction_log`.
    """
    znodes = tables["znodes"]
    ephemeral = znodes.filter(pc.is_valid(znodes["session_open"])).to_pylist()
    ended: set[tuple[str, int]] = set()
    for batch in streamed(tables, "transaction_log")(("type", "path", "node", "session")):
        is_close = pc.equal(batch.column("type"), "closeSession")
        closed = batch.filter(pc.and_(is_close, pc.is_valid(batch.column("path"))))
        columns = (closed.column(name).to_pylist() for name in ("node", "session"))
        ended.update(zip(*columns, strict=True))
    for node in sorted({row["node"] for row in ephemeral} | {node for node, _ in ended}):
        own = [row for row in ephemeral if row["node"] == node]
        proofs = list(filter(None, map(_orphan, own)))
        ended_here = sum(one == node for one, _ in ended)
        yield node, spelled(ORPHAN, node, proofs, cases=len(own) + ended_here)


def _members(disks: pa.Table) -> dict[str, int]:
    """Return the last zxid of each server that took part in the newest epoch that any did."""
    rows = [row for row in disks.to_pylist() if row["current_epoch"] is not None]
    newest = max((row["current_epoch"] for row in rows), default=None)
    return {row["node"]: row["last_zxid"] for row in rows if row["current_epoch"] == newest}


def _touched(later: Sequence[_Row], znodes: pa.Table) -> set[str]:
    """Return the paths that transactions change, whether as a znode or as the parent of one."""
    ended = [row["session"] for row in later if row["type"] == "closeSession"]
    owned = znodes.filter(pc.is_in(znodes["ephemeral_owner"], pa.array(ended, pa.int64())))
    paths = {row["path"] for row in later if row["path"] is not None}
    paths |= set(owned["path"].to_pylist())
    return paths | {path.rpartition("/")[0] or "/" for path in paths}


def _disks_changed(tables: Tables) -> bool:
    return any(fault in _CHANGED for fault in tables["faults"]["fault"].to_pylist())


def _two(same: Sequence[_Row]) -> Proof:
    one = same[0]
    other = next(row for row in same if row["digest"] != one["digest"])
    return Proof.of(
        "transaction {zxid} is {found} in the log of {node}, and {other} in that of {other_node}",
        zookeeper_ids={"zxid": one["zxid"]},
        node=one["node"],
        found=_request(one),
        other_node=other["node"],
        other=_request(other),
    )


def _request(row: _Row) -> Proof:
    named = {} if row["path"] is None else {"path": row["path"]}
    return Proof.of(
        f"a {{type}}{' of {path}' if named else ''} (session {{session}}, request {{cxid}})",
        zookeeper_ids={"session": row["session"]},
        type=row["type"],
        cxid=row["cxid"],
        **named,
    )


def _unlike(path: str, by_node: Mapping[str, _Row], nodes: Sequence[str], common: int) -> Proof:
    one = nodes[0]
    other = next(node for node in nodes if not _alike(by_node.get(one), by_node.get(node)))
    first, second = by_node.get(one), by_node.get(other)
    return Proof.of(
        "up to {zxid}, which both have, {path} is {found} on {node}, and {other} on {other_node}",
        zookeeper_ids={"zxid": common},
        path=path,
        node=one,
        found=_state(first, second),
        other_node=other,
        other=_state(second, first),
    )


def _alike(one: _Row | None, other: _Row | None) -> bool:
    if one is None or other is None:
        return one is other
    return all(one[name] == other[name] for name in _COMPARED)


def _state(row: _Row | None, other: _Row | None) -> Proof:
    """Return the clause of a znode: its data, and what else sets it apart from another."""
    if row is None:
        return Proof.of("not there")
    data = "null" if row["value"] is None else repr(row["value"])[1:]
    apart = ["version", "mzxid"] if other is None else [n for n in _COMPARED if row[n] != other[n]]
    told = [name for name in apart if name != "digest"]
    ids = {name: row[name] for name in told if name in _IDS}
    return Proof.of(
        ", ".join(["{data}", *(f"{name} {{{name}}}" for name in told)]),
        zookeeper_ids=ids,
        data=data,
        **{name: row[name] for name in told if name not in ids},
    )


def _orphan(row: _Row) -> Proof | None:
    if row["session_open"]:
        return None
    return Proof.of(
        "{node} has {path}, made by transaction {czxid} for session {session}, which is not open",
        node=row["node"],
        path=row["path"],
        zookeeper_ids={"czxid": row["czxid"], "session": row["ephemeral_owner"]},
    )


CHECKS: Final = (
    TableCheck(
        entry=TRANSACTION_ENTRY,
        kernel=divergent_transactions,
        tables=("transaction_log", "faults"),
    ),
    TableCheck(
        entry=TREE_ENTRY,
        kernel=divergent_trees,
        tables=("server_disks", "transaction_log", "znodes", "faults"),
    ),
    TableCheck(
        entry=ORPHAN_ENTRY,
        kernel=orphan_ephemerals,
        tables=("znodes", "transaction_log"),
    ),
)
