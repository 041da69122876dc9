"""The metadata log of the ZooKeeper generation: METADATA_LOG from the disks of the ensemble.

In the ZooKeeper generation the metadata log is the ensemble's: each change of these znodes is a
decision, its zxid the metadata offset, and its type that of the record that KRaft has for it, if
it has one.

| znode | row |
|---|---|
| `/brokers/ids/N` made | RegisterBrokerRecord, UnfenceBrokerRecord; the zxid is its broker epoch |
| its content | BrokerInfoRecord, unknown to KRaft: its host, and the version of the content |
| `/brokers/ids/N` gone | FenceBrokerRecord: its session has ended |
| `/brokers/topics/T` made, gone | TopicRecord, RemoveTopicRecord; its content has the replicas |
| these changed | ReassignmentRecord, unknown to KRaft, of each partition that has others now |
| `/admin/delete_topics/T` made | TopicDeletionRecord, unknown to KRaft: the deletion is decided |
| `/brokers/topics/T/partitions/P/state` | PartitionRecord, then a PartitionChangeRecord a change |
| `/controller_epoch` | LeaderChangeMessage: the broker in `/controller` is the active controller |
| `/brokers/hosts/H` | BrokerHostRecord, RemoveBrokerHostRecord: the id of a broker on host H |
| `/config/topics/T`, `/config/brokers/N` | ConfigRecord, one a setting that changed |

The version of `state` is the partition epoch. Unlike KRaft's, each of its changes states both
epochs. Releases before 2.8 give topics no ids: the zxid that made a topic stands for one. Rows of
one transaction share its zxid, the controller epoch behind it, and its digest.

A server's transaction logs that begin with the ensemble are the whole story. One that lost its
disk, or was away for long, took over a snapshot of its leader: there its rows have the snapshot,
and before it what counts of what it had until then, its lost disks included
(`clusters.kafka_zookeeper.log_runs`).
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, assert_never

import pyarrow as pa

from fencepost.clusters.data_tree.transactions import (
    Change,
    CheckVersionTxn,
    CloseSessionTxn,
    CreateSessionTxn,
    CreateTxn,
    DeleteTxn,
    ErrorTxn,
    SetAclTxn,
    SetDataTxn,
    Transaction,
)
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.kafka_zookeeper.log_runs import LogRun, first_of_epoch, runs_that_count
from fencepost.clusters.port import NodeName
from fencepost.clusters.witness.witness import Damage, WitnessReport
from fencepost.clusters.zookeeper.stored.logs import StoredError, log_files, transactions_in
from fencepost.clusters.zookeeper.stored.snapshots import NEVER, newest_tree
from fencepost.clusters.zookeeper.view import zxid_text
from fencepost.history.cluster_schema import METADATA_LOG
from fencepost.history.failure import HarnessError
from fencepost.history.table_file import whole_table_file

_TABLE: Final = "metadata_log"
_SUBJECT: Final = "transaction logs"
_PIECE_ROWS: Final = 1 << 14
_NO_DIGEST: Final = 0
"""A snapshot is no transaction."""
_STATE: Final = re.compile(r"/brokers/topics/([^/]+)/partitions/(\d+)/state")
_TOPIC: Final = re.compile(r"/brokers/topics/([^/]+)")
_DELETION: Final = re.compile(r"/admin/delete_topics/([^/]+)")
_BROKER: Final = re.compile(r"/brokers/ids/(\d+)")
_HOST: Final = re.compile(r"/brokers/hosts/([^/]+)")
_CONFIG: Final = re.compile(r"/config/(topics|brokers)/([^/]+)")
_CONTROLLER: Final = "/controller"
_CONTROLLER_EPOCH: Final = "/controller_epoch"
_NO_LEADER: Final = -1
_NO_RECORD: Final = -1
"""The type key of what is no record of KRaft's."""
_Row = dict[str, Any]
_Json = Mapping[str, Any]


def write_metadata_log(
    node_data: Mapping[NodeName, Path],
    *,
    raw: Path,
    report: WitnessReport,
    kept: Mapping[NodeName, Path] = MappingProxyType({}),
) -> None:
    """Write the table metadata_log into a run's raw directory, and note in `report` what it has.

    `node_data` has each ZooKeeper server's data directory, `kept` a directory with the
    `version-2` directories, numbered, of its disks that were lost. Raises HarnessError if `raw`
    cannot be written, or a directory not be read.
    """
    try:
        raw.mkdir(parents=True, exist_ok=True)
        homes = {node: _homes(data, kept.get(node)) for node, data in sorted(node_data.items())}
        with whole_table_file(raw / f"{_TABLE}.parquet", _TABLE) as file:
            for node, runs in runs_that_count(homes).items():
                report.metadata_record_counts[node] = 0
                rows = metadata_rows(node, runs, report=report)
                while piece := list(islice(rows, _PIECE_ROWS)):
                    file.add(pa.Table.from_pylist(piece, schema=METADATA_LOG))
                    report.metadata_record_counts[node] += len(piece)
    except OSError as error:
        raise HarnessError(
            f"cannot copy the metadata of the ensemble into {raw}: {error}"
        ) from error


def _homes(data: Path, kept: Path | None) -> list[Path]:
    lost = [] if kept is None or not kept.is_dir() else sorted(kept.iterdir())
    return [*lost, data / "version-2"]


def metadata_rows(
    node: NodeName, runs: Sequence[LogRun], *, report: WitnessReport
) -> Iterator[dict[str, Any]]:
    """Yield a server's rows, run by run, those of a snapshot first; damages go to `report`."""
    starts = [_start(run) for run in runs]
    for at, run in enumerate(runs):
        # A later run supersedes what an earlier one has from there on.
        end = min((run.end, *starts[at + 1 :]))
        if run.is_last or starts[at] < end:
            yield from _rows(node, run, end=end, report=report)


def _rows(
    node: NodeName, run: LogRun, *, end: int, report: WitnessReport
) -> Iterator[dict[str, Any]]:
    changes = MetadataChanges(node)
    try:
        transactions = _transactions(run, end=end)
        one = next(transactions, None)
        snapshot = _snapshot_before(run)
        if snapshot is not None:
            yield from changes.begin(
                snapshot, timestamp_ms=one.time_ms if one else 0, digest=_NO_DIGEST
            )
        elif run.first is not None and run.first != first_of_epoch(run.first):
            if not run.is_last:
                return
            what = f"the logs begin at {zxid_text(run.first)}, and no snapshot goes before that"
            report.damages.append(Damage(node=node, subject=_SUBJECT, what=what))
        while one is not None:
            yield from changes.of(one)
            one = next(transactions, None)
    except StoredError as error:
        report.damages.append(Damage(node=node, subject=_SUBJECT, what=str(error)))


def _snapshot_before(run: LogRun) -> DataTree | None:
    return newest_tree(run.home, before=NEVER if run.first is None else run.first)


def _start(run: LogRun) -> int:
    """Return the zxid after which a run begins."""
    snapshot = _snapshot_before(run)
    if snapshot is not None:
        return snapshot.zxid
    return NEVER if run.first is None else run.first - 1


def _transactions(run: LogRun, *, end: int) -> Iterator[Transaction]:
    """Yield the transactions of a run up to this one, each once."""
    after = 0 if run.first is None else run.first - 1
    for log in log_files(run.home):
        for one in transactions_in(log):
            if one.zxid > end:
                return
            if one.zxid > after:
                after = one.zxid
                yield one


class MetadataChanges:
    """The metadata as of one transaction after the other, and the rows that tell what it made."""

    def __init__(self, node: NodeName) -> None:
        self._node = node
        self._controller: int | None = None
        self._controller_epoch = -1
        self._topics: dict[str, _Json] = {}
        """The content of each topic's znode, with the id that it goes by."""
        self._states: dict[str, _Json] = {}
        """The content of each state, by path."""
        self._settings: dict[str, dict[str, str]] = {}
        self._owners: dict[str, int] = {}
        """The session of each ephemeral znode."""

    def begin(self, tree: DataTree, *, timestamp_ms: int, digest: int) -> Iterator[_Row]:
        """Yield the rows of a snapshot, from which a log goes on."""
        rows: list[_Row] = []
        for path, znode in sorted(tree.znodes.items()):
            if znode.session is not None:
                self._owners[path] = znode.session
            rows += self._stated(path, znode.data, version=znode.version, czxid=znode.czxid)
        yield from self._finished(
            rows, zxid=tree.zxid, timestamp_ms=timestamp_ms, digest=digest, snapshot=True
        )

    def of(self, transaction: Transaction) -> Iterator[_Row]:
        """Yield the rows of the next transaction; most have none."""
        if transaction.refused:
            return
        rows = [row for _, change in transaction.changes for row in self._by(change, transaction)]
        yield from self._finished(
            rows,
            zxid=transaction.zxid,
            timestamp_ms=transaction.time_ms,
            digest=transaction.digest,
            snapshot=False,
        )

    def _by(self, change: Change, transaction: Transaction) -> Iterator[_Row]:
        match change:
            case CreateTxn():
                if change.ephemeral_owner:
                    self._owners[change.path] = change.ephemeral_owner
                yield from self._stated(change.path, change.data, czxid=transaction.zxid)
            case SetDataTxn():
                yield from self._stated(change.path, change.data, version=change.version)
            case DeleteTxn():
                yield from self._gone(change.path)
            case CloseSessionTxn():
                session = transaction.session
                for path in sorted(p for p, owner in self._owners.items() if owner == session):
                    yield from self._gone(path)
            case CheckVersionTxn() | CreateSessionTxn() | ErrorTxn() | SetAclTxn():
                pass
            case _:
                assert_never(change)

    def _stated(
        self, path: str, data: bytes | None, *, version: int = 0, czxid: int | None = None
    ) -> Iterator[_Row]:
        """Yield what the content of a znode says. `czxid`: it was made by this transaction."""
        content = _content(data)
        if path == _CONTROLLER:
            self._controller = content.get("brokerid")
        elif path == _CONTROLLER_EPOCH:
            yield from self._elected(data)
        elif found := _STATE.fullmatch(path):
            yield from self._partition(path, found[1], int(found[2]), content, version)
        elif found := _TOPIC.fullmatch(path):
            yield from self._topic(found[1], content, czxid)
        elif found := _CONFIG.fullmatch(path):
            yield from self._configured(path, found[1], found[2], content)
        elif found := _DELETION.fullmatch(path):
            yield {"type": "TopicDeletionRecord", "topic": found[1], "detail": path}
        elif found := _HOST.fullmatch(path):
            given = {"name": found[1], "broker_id": content.get("broker.id")}
            yield {"type": "BrokerHostRecord", **given, "detail": json.dumps(content)}
        elif found := _BROKER.fullmatch(path):
            yield from self._broker(path, int(found[1]), content, czxid)

    def _gone(self, path: str) -> Iterator[_Row]:
        if found := _BROKER.fullmatch(path):
            yield {
                "type": "FenceBrokerRecord",
                "broker_id": int(found[1]),
                "fenced": True,
                "detail": path,
            }
        elif found := _HOST.fullmatch(path):
            yield {"type": "RemoveBrokerHostRecord", "name": found[1], "detail": path}
        elif path == _CONTROLLER:
            self._controller = None
        elif (found := _TOPIC.fullmatch(path)) and (topic := self._topics.pop(found[1], None)):
            yield {
                "type": "RemoveTopicRecord",
                "topic": found[1],
                "topic_id": topic["topic_id"],
                "detail": path,
            }
        for known in (self._states, self._settings, self._owners):
            known.pop(path, None)

    def _broker(
        self, path: str, broker_id: int, content: _Json, czxid: int | None
    ) -> Iterator[_Row]:
        if czxid is not None:
            registered = {"broker_id": broker_id, "broker_epoch": czxid, "detail": path}
            yield {
                "type": "RegisterBrokerRecord",
                "fenced": True,
                "in_controlled_shutdown": False,
                **registered,
            }
            yield {"type": "UnfenceBrokerRecord", "fenced": False, **registered}
        if "host" in content:
            yield {
                "type": "BrokerInfoRecord",
                "broker_id": broker_id,
                "name": content["host"],
                "value": str(content.get("version")),
                "detail": json.dumps(content),
            }

    def _elected(self, data: bytes | None) -> Iterator[_Row]:
        self._controller_epoch = int(data or b"-1")
        if self._controller is not None:
            yield {
                "type": "LeaderChangeMessage",
                "control": True,
                "leader": self._controller,
                "detail": f"{_CONTROLLER_EPOCH} {self._controller_epoch}",
            }

    def _topic(self, name: str, content: _Json, czxid: int | None) -> Iterator[_Row]:
        known = self._topics.get(name)
        own = content.get("topic_id") if czxid is None else content.get("topic_id", hex(czxid))
        topic_id = own if known is None else known["topic_id"]
        self._topics[name] = {**content, "topic_id": topic_id}
        if known is None:
            yield {
                "type": "TopicRecord",
                "topic": name,
                "topic_id": topic_id,
                "detail": json.dumps(content),
            }
            return
        for partition in map(int, known.get("partitions", ())):
            placed = _placed(content, partition)
            if placed != _placed(known, partition):
                moved = {"topic": name, "topic_id": topic_id, "partition": partition, **placed}
                yield {"type": "ReassignmentRecord", **moved, "detail": json.dumps(content)}

    def _partition(
        self, path: str, name: str, partition: int, state: _Json, version: int
    ) -> Iterator[_Row]:
        topic = self._topics.get(name)
        if topic is None or "isr" not in state:
            return
        before, self._states[path] = self._states.get(path), state
        led = before is None or any(before[key] != state[key] for key in ("leader", "leader_epoch"))
        yield {
            "type": "PartitionRecord" if before is None else "PartitionChangeRecord",
            "topic": name,
            "topic_id": topic["topic_id"],
            "partition": partition,
            **_placed(topic, partition),
            "isr": state["isr"],
            "leader": max(_NO_LEADER, state["leader"]) if led else None,
            "leader_epoch": state["leader_epoch"],
            "partition_epoch": version,
            "leader_recovery_state": state.get("leader_recovery_state", 0),
            "version": state.get("version", 1),
            "detail": json.dumps(state),
        }

    def _configured(self, path: str, kind: str, name: str, content: _Json) -> Iterator[_Row]:
        before, settings = self._settings.get(path, {}), dict(content.get("config", {}))
        self._settings[path] = settings
        resource: _Row = {"topic": name}
        if kind == "brokers":
            # "<default>" stands for all brokers.
            resource = {"broker_id": int(name) if name.isdecimal() else None}
        for key in sorted(before.keys() | settings.keys()):
            if before.get(key) != settings.get(key):
                told = {"type": "ConfigRecord", "name": key, "value": settings.get(key)}
                yield {**told, **resource, "detail": f"{path} {key}={settings.get(key)}"}

    def _finished(self, rows: Iterable[_Row], *, zxid: int, **columns: Any) -> Iterator[_Row]:
        for row in rows:
            yield {
                "node": self._node,
                "metadata_offset": zxid,
                "controller_epoch": self._controller_epoch,
                "type_key": _NO_RECORD,
                "version": 0,
                "control": False,
                **columns,
                **row,
            }


def _content(data: bytes | None) -> _Json:
    """Return the fields of a znode; none if its content is not an object of JSON."""
    try:
        found = json.loads(data or b"{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _placed(topic: _Json, partition: int) -> _Row:
    """Return the replicas that the content of a topic gives a partition."""
    columns = ("replicas", "adding", "removing")
    names = ("partitions", "adding_replicas", "removing_replicas")
    given = (topic.get(name, {}).get(str(partition), ()) for name in names)
    return {column: list(ids) for column, ids in zip(columns, given, strict=True)}
