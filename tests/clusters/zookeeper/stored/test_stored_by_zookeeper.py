"""The disk of a real server is read as ZooKeeper's own tools read it."""

import base64
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.security import make_digest_acl

from fencepost.clusters.data_tree.transactions import CreateTxn, DeleteTxn, SetAclTxn, Transaction
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.place import Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER, ZooKeeperCluster
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared
from fencepost.clusters.zookeeper.stored.logs import (
    StoredError,
    log_files,
    transactions_in,
    zxid_of,
)
from fencepost.clusters.zookeeper.stored.snapshots import newest_tree, read_snapshot
from fencepost.clusters.zookeeper.stored.tables import write_server_disks
from fencepost.clusters.zookeeper.system import ZooKeeperSpec
from fencepost.history.clock import Clock

pytestmark = pytest.mark.kafka

_ENTRY = re.compile(r"session (0x\w+) cxid (0x\w+) zxid (0x\w+) (\w+)(?: '?([^,\n]*))?")
_STAT = {
    "cZxid": "czxid",
    "mZxid": "mzxid",
    "pZxid": "pzxid",
    "cversion": "cversion",
    "dataVersion": "version",
    "aclVersion": "aversion",
    "ephemeralOwner": "ephemeral_owner",
}
"""The tool's name of each counter, and ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    prepared: ZooKeeperPrepared
    data: Path
    warden: Warden

    @property
    def home(self) -> Path:
        return self.data / "version-2"

    @property
    def snapshots(self) -> list[Path]:
        return sorted(self.home.glob("snapshot.*"), key=zxid_of)

    def transactions(self) -> list[Transaction]:
        return [one for log in log_files(self.home) for one in transactions_in(log)]

    def printed(self, tool: str, file: Path) -> str:
        java = str(self.prepared.java.home / "bin" / "java")
        class_path = self.prepared.release.class_path
        command = [java, "-cp", class_path, f"org.apache.zookeeper.server.{tool}", "-d", str(file)]
        done = run_command(
            command,
            warden=self.warden,
            name=f"{tool}-{file.name}",
            directory=self.data,
            timeout_s=120.0,
        )
        return done.output


@pytest.fixture(scope="module", params=["", "gz", "snappy"])
def disk(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    until: Callable[..., bool],
) -> Iterator[Disk]:
    """The disk of a server that stopped, with snapshots that are compressed so."""
    method = f"-Dzookeeper.snapshot.compression.method={request.param}"
    spec = ZooKeeperSpec(
        servers=1,
        settings={"snapCount": "40"},
        java_options=(method,),
    )
    with Warden(run_id="test") as warden:
        prepared = DRIVER.prepare(spec, Wanted(), print)
        cluster = ZooKeeperCluster(
            spec,
            prepared=prepared,
            site=Site(
                host=LocalHost(warden),
                directory=tmp_path_factory.mktemp("nodes"),
                clock=Clock.start(),
            ),
        )
        try:
            cluster.start()
            found = Disk(prepared=prepared, data=cluster.data_of("server-1"), warden=warden)
            with _used(cluster):
                # A server that is killed leaves the snapshot torn that it is writing.
                assert until(lambda: all(map(_is_whole, found.snapshots)))
                cluster.kill_node("server-1")
            last = found.transactions()[-1].zxid
            # A server takes a snapshot when it starts; others it leaves out if it is busy.
            cluster.start_node("server-1")
            assert until(lambda: (tree := newest_tree(found.home)) and tree.zxid >= last)
        finally:
            cluster.stop()
        yield found


def _is_whole(snapshot: Path) -> bool:
    try:
        read_snapshot(snapshot)
    except StoredError:
        return False
    return True


@contextmanager
def _used(cluster: ZooKeeperCluster) -> Iterator[None]:
    """Do something of each kind, with an ephemeral of a session that is open meanwhile."""
    hosts = ",".join(cluster.client_addresses())
    client, brief = KazooClient(hosts=hosts, timeout=4.0), KazooClient(hosts=hosts, timeout=4.0)
    client.start(timeout=30)
    brief.start(timeout=30)
    client.create("/a", b"1")
    client.create("/a/b")
    client.set_acls("/a/b", [make_digest_acl("user", "word", all=True), *client.get_acls("/a")[0]])
    client.create("/kept", b"x", ephemeral=True)
    brief.create("/a/brief", b"x", ephemeral=True)
    with suppress(NodeExistsError):
        client.create("/a")
    multi = client.transaction()
    multi.create("/m", b"m")
    multi.check("/a", 0)
    multi.set_data("/a", b"2")
    multi.commit()
    refused = client.transaction()
    refused.create("/m2", b"m")
    refused.check("/a", 77)
    refused.commit()
    brief.stop()
    brief.close()
    for number in range(90):
        client.create(f"/n{number}", b"%d" % number)
        if number % 3 == 0:
            client.delete(f"/n{number}")
    client.create("/a/c-", b"\x00\xff", sequence=True)
    yield
    client.stop()
    client.close()


def test_its_logs_say_what_the_toolkit_says(disk: Disk) -> None:
    logs = log_files(disk.home)
    transactions, printed = [], []
    for log in {logs[0]: None, logs[-1]: None}:
        transactions += transactions_in(log)
        printed += _ENTRY.findall(disk.printed("persistence.TxnLogToolkit", log))
    told = {_type(one) for one in transactions}
    assert {"createSession", "create", "setACL", "multi", "error", "closeSession"} <= told
    assert [row[:4] for row in printed] == [
        (hex(one.session), hex(one.cxid), hex(one.zxid), _type(one)) for one in transactions
    ]
    paths = {
        one.zxid: change.path
        for one in transactions
        for _, change in one.changes[: len(one.changes) == 1]
        if isinstance(change, CreateTxn | DeleteTxn | SetAclTxn)
    }
    assert {zxid: path for *_, zxid, _, path in printed if int(zxid, 16) in paths} == {
        hex(zxid): path for zxid, path in paths.items()
    }


def _type(transaction: Transaction) -> str:
    return "multi" if len(transaction.changes) > 1 else transaction.changes[0][0]


def test_each_tree_has_the_digest_that_the_server_wrote_beside_the_transaction(disk: Disk) -> None:
    tree, transactions = read_snapshot(disk.snapshots[0]), disk.transactions()
    for one in transactions:
        tree.apply(one)
        if one.tree_digest is not None:
            assert one.tree_digest == _digest(tree), one
    assert {name for one in transactions if one.tree_digest is None for name, _ in one.changes} == {
        "error"
    }


def _digest(tree: DataTree) -> int:
    """The sum of the checksums of all znodes but ZooKeeper's own (`server.DigestCalculator`)."""
    total = 0
    for path, one in tree.znodes.items():
        if path.startswith("/zookeeper/"):
            continue
        stat = struct.pack(
            ">qqqqqiiiq",
            *(one.czxid, one.mzxid, one.pzxid, one.ctime_ms, one.mtime_ms),
            *(one.version, one.cversion, one.aversion, one.ephemeral_owner),
        )
        total += crc32(stat, crc32(one.data or b"", crc32(path.removesuffix("/").encode())))
    return (total + (1 << 63)) % (1 << 64) - (1 << 63)


def test_its_snapshots_hold_what_the_formatter_says(disk: Disk) -> None:
    assert len(disk.snapshots) >= 2
    for path in (disk.snapshots[0], disk.snapshots[-1]):
        printed = disk.printed("SnapshotFormatter", path)
        tree = read_snapshot(path)
        assert _told(tree) == dict(_formatted(printed))
        sessions = re.findall(r"^(0x\w+), (\d+), \d+$", printed, re.MULTILINE)
        assert {int(one, 16): int(timeout) for one, timeout in sessions} == tree.sessions
    assert list(tree.sessions) == [tree.znodes["/kept"].session]


def _told(tree: DataTree) -> Mapping[str, Mapping[str, object]]:
    return {
        path: {
            **{theirs: getattr(one, ours) for theirs, ours in _STAT.items()},
            "data": one.data or b"",
        }
        for path, one in tree.znodes.items()
    }


def _formatted(printed: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    for block in printed.split("\n----\n"):
        if "cZxid" not in block:
            continue
        path, _, lines = block.partition("\n")
        stated = dict(re.findall(r"^  (\w+) = (.*)$", lines, re.MULTILINE))
        numbers = {name: int(stated[name], 0) for name in _STAT}
        yield path, {**numbers, "data": base64.b64decode(stated["data"])}


def test_its_state_is_that_of_a_snapshot_and_what_followed(disk: Disk, tmp_path: Path) -> None:
    trees = [read_snapshot(path) for path in disk.snapshots]
    for one in disk.transactions():
        for tree in trees:
            if one.zxid > tree.zxid:
                tree.apply(one)
    for tree in trees:
        assert tree.sessions == trees[0].sessions
        tree.znodes.pop("/zookeeper/config")  # It is set at each start, and in no log.
        assert tree.znodes == trees[0].znodes
    report = write_server_disks({"server-1": disk.data}, tmp_path)
    assert report.damaged == ()
    assert report.last_zxids == {"server-1": trees[0].zxid}
    assert report.transaction_count == len(disk.transactions())
