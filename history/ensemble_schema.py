"""The tables of an ensemble of ZooKeeper: its servers' answers, and the content of their disks.

Nodes are the harness's names (`server-1`); zxids, sessions, versions and epochs are ZooKeeper's.
"""

from typing import Final

import pyarrow as pa

ENSEMBLE: Final = pa.schema(
    [
        # One row for each answer of a server of ZooKeeper to the harness, several a second. A
        # server without a row for a while did not answer.
        pa.field("asked_ns", pa.int64(), nullable=False),
        # The time when the answers of this look were there.
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        # False: it looks for a leader, or is about to serve.
        pa.field("serving", pa.bool_(), nullable=False),
        # Of those that serve: "leader", "follower".
        pa.field("mode", pa.string()),
        # Of those that serve: the last transaction applied. A leader before the first one of its
        # epoch shows the epoch and 0.
        pa.field("zxid", pa.int64()),
    ]
)

SERVER_DISKS: Final = pa.schema(
    [
        # One row a server, as its data directory was when the server had stopped for good.
        pa.field("node", pa.string(), nullable=False),
        # The greatest epoch that it promised to a leader. Null: its file does not say.
        pa.field("accepted_epoch", pa.int64()),
        # The epoch of the last leader that it took over the state of.
        pa.field("current_epoch", pa.int64()),
        # The newest whole snapshot; null without one.
        pa.field("snapshot_zxid", pa.int64()),
        # The end of what it would restore, from that snapshot and the logs after it.
        pa.field("last_zxid", pa.int64(), nullable=False),
        # The open sessions then.
        pa.field("session_count", pa.int64(), nullable=False),
    ]
)

TRANSACTION_LOG: Final = pa.schema(
    [
        # One row a change and server, from the server's own transaction logs, in their order: by
        # node, zxid, item. Everything before the oldest log is in the snapshots alone.
        pa.field("node", pa.string(), nullable=False),
        pa.field("zxid", pa.int64(), nullable=False),
        # 0-based place in the transaction: a change of a multi, a znode that went with a session.
        pa.field("item", pa.int32(), nullable=False),
        pa.field("session", pa.int64(), nullable=False),
        # The number of the request in its session.
        pa.field("cxid", pa.int32(), nullable=False),
        # Wall clock of the leader, ms since 1970.
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        # "create2", "setData", "closeSession", …; "error" for what was refused.
        pa.field("type", pa.string(), nullable=False),
        pa.field("path", pa.string()),
        # The version that a setData or a setACL makes, or that a check expects.
        pa.field("version", pa.int32()),
        # Of what was refused: ZooKeeper's code.
        pa.field("error", pa.int32()),
        # The first 8 bytes of the SHA-256 of the transaction, signed.
        pa.field("digest", pa.int64(), nullable=False),
    ]
)

ZNODES: Final = pa.schema(
    [
        # One row a server and znode of the tree that the server would restore. A multiple of the
        # znodes of the ensemble: every server has them all.
        pa.field("node", pa.string(), nullable=False),
        pa.field("path", pa.string(), nullable=False),
        pa.field("czxid", pa.int64(), nullable=False),
        pa.field("mzxid", pa.int64(), nullable=False),
        pa.field("pzxid", pa.int64(), nullable=False),
        pa.field("ctime_ms", pa.int64(), nullable=False),
        pa.field("mtime_ms", pa.int64(), nullable=False),
        pa.field("version", pa.int32(), nullable=False),
        # The count as stored: of the children that were ever made.
        pa.field("cversion", pa.int32(), nullable=False),
        pa.field("aversion", pa.int32(), nullable=False),
        # A session, 0 for none, or ZooKeeper's mark of a container or of a time to live.
        pa.field("ephemeral_owner", pa.int64(), nullable=False),
        # Of an ephemeral znode: whether its session is open in the same server's state.
        pa.field("session_open", pa.bool_()),
        # Its permissions: "world:anyone:31".
        pa.field("acl", pa.string(), nullable=False),
        # The first 256 bytes of its data; null if it has none.
        pa.field("value", pa.binary()),
        # The first 8 bytes of the SHA-256 of its data, signed.
        pa.field("digest", pa.int64(), nullable=False),
    ]
)
