"""D28 client-duplicate: A client sent a record again under another producer epoch.

More values than `require: {client_duplicates_max: …}` stand at several offsets, each copy under a
producer id or epoch of its own, the same in the log of every replica. The workloads send a value
once, so that it was the client library that sent it again. Where a duplicate is one of which the
logs do not tell whose it is, the key is unknown.

A broker tells what is sent again from what is new by producer id, producer epoch and sequence
number. A client that begins another epoch, or gets another id, starts its sequences anew, and what
it then sends again of what it had in flight is new to every broker: the second copy does not show
whether the first was appended. So the brokers caused a value that stands twice in one epoch, and
the client caused one whose copies all stand in epochs of their own. The logs say which: every batch
carries both. What a client gave up on, and when, excuses no broker whose log has two copies under
one producer id and epoch.

librdkafka begins an epoch, for all its partitions at once, when a batch of one partition is out of
sequence because the one before it was refused (NOT_ENOUGH_REPLICAS), so the copies may be of
another partition than the trouble was. Whether the answer that made it do so was right is not asked
here. A scenario may promise of its clients that they do no such thing (`require:
{client_duplicates_max: 0}`): then what they sent again is an anomaly of its own, D28.

Unspelled anomalies (`PROOFS_MAX`) stay as they were found, and so does a value of which some copy
is in no log any more, or differs from replica to replica. Where no log of a key was read, as in a
run whose harness was killed, nothing tells who made a duplicate, and the key is unknown.

Meaning: A client that promises idempotence wrote a record twice. No broker could tell.
Case: a value of the log that had been acknowledged when its producer first gave up on a send, if it
ever did
Source: KIP-98, KIP-360; librdkafka, `rd_kafka_idemp_drain_epoch_bump`, and its issue 4953
"""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.finding_rows import FINDINGS
from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.tables import (
    SealedFile,
    cluster_file,
    rows_in,
    run_files,
)
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.writer import bucket_of

COPIES: Final = pa.schema(
    [
        # A row a copy of a value in a replica's log; -1 without idempotence.
        pa.field("key", pa.string(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int16(), nullable=False),
    ]
)

_LOG: Final = logging.getLogger(__name__)
_NAME: Final = "duplicate"
_BOUND: Final = "client_duplicates_max_count"
ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.RECORD,
    rests_on=("unique-values", "sent-values"),
    needs=("operations", "records"),
    bound=_BOUND,
)
_BY_CLIENT: Final = ENTRY.name
_AGAIN: Final = ": sent again by its client, in producer epochs "
_Epoch = tuple[int, int]
"""Producer id and producer epoch."""
_Copies = dict[tuple[str, int], dict[str, dict[int, _Epoch]]]
"""(key, value) → node → offset → the epoch under which its log has the value there."""


def with_culprits(
    findings: pa.Table,
    *,
    run: RunDirectory,
    manifest: Manifest,
    session: TaskSession,
    budget_s: float,
) -> pa.Table:
    """Return FINDINGS in which duplicates are the brokers' or the clients', as far as logs tell.

    Where the scenario bounds those of the clients, there are findings on these as well.
    """
    told = _told(findings, run=run, manifest=manifest, session=session, budget_s=budget_s)
    bound = manifest.required_bounds.get(_BOUND)
    return told if bound is None else pa.concat_tables([told, of_clients(told, bound=bound)])


def of_clients(findings: pa.Table, *, bound: float) -> pa.Table:
    """Return FINDINGS of D28 out of those of duplicates that the logs have been asked about.

    Up to `bound` of them, over all keys, are allowed. A duplicate on which the logs are silent is a
    doubt, since a client may have made it.
    """
    mine = findings.filter(pc.equal(findings["check"], _NAME)).to_pylist()
    again = [[one for one in row["anomalies"] if _AGAIN in (one["rule"] or "")] for row in mine]
    over = sum(map(len, again)) > bound
    rows = []
    for row, found in zip(mine, again, strict=True):
        never = [one | {"allowed": False} for one in found] if over else []
        untold = row["allowed_count"] - len(found)
        doubt = f"{untold} duplicates of {row['key']} may be of its clients: no log tells"
        counts = {"never_count": len(never), "allowed_count": 0, "anomalies": never}
        unknown = row["unknown"] or (doubt if untold else None)
        rows.append(row | counts | {"check": _BY_CLIENT, "unknown": unknown, "seconds": 0.0})
    return pa.Table.from_pylist(rows, schema=FINDINGS)


def _told(
    findings: pa.Table,
    *,
    run: RunDirectory,
    manifest: Manifest,
    session: TaskSession,
    budget_s: float,
) -> pa.Table:
    wanted = _values_found(findings)
    idempotent = manifest.promises.idempotent
    if not idempotent or not wanted or "replica_records" not in manifest.tables:
        return findings
    files = [
        cluster_file(run, manifest, "replica_records", bucket=bucket)
        for bucket in sorted({bucket_of(key) for key in wanted})
    ]
    answers = run_files(session, files, partial(_copies, wanted=wanted), budget_s=budget_s)
    for answer in answers:
        if answer.failure:
            _LOG.warning("the logs were not asked whose the duplicates are: %s", answer.failure)
    copies = [answer.content for answer in answers if answer.content is not None]
    return judged_by_logs(findings, pa.concat_tables([COPIES.empty_table(), *copies]))


def judged_by_logs(findings: pa.Table, copies: pa.Table) -> pa.Table:
    """Return FINDINGS, each duplicate allowed or not as the logs say whose it is.

    Values of which the logs of their key do not tell stay as found; those of a key of which no log
    was read are a doubt. `copies`: COPIES of the values found, of all replicas, and one of each key
    whose logs were read.
    """
    found: _Copies = {}
    for row in copies.to_pylist():
        of_node = found.setdefault((row["key"], row["value"]), {}).setdefault(row["node"], {})
        of_node[row["offset"]] = (row["producer_id"], row["producer_epoch"])
    mine = pc.fill_null(pc.equal(findings["check"], _NAME), False)
    logged = {key for key, _ in found}
    rows = [
        _judged(row, found) if row["key"] in logged else _doubted(row)
        for row in findings.filter(mine).to_pylist()
    ]
    others = findings.filter(pc.invert(mine))
    return pa.concat_tables([others, pa.Table.from_pylist(rows, schema=FINDINGS)])


def _judged(row: dict[str, Any], copies: _Copies) -> dict[str, Any]:
    before = row["anomalies"]
    anomalies = [_by_logs(row["key"], one, copies) for one in before]
    freed = sum(one["allowed"] for one in anomalies) - sum(one["allowed"] for one in before)
    # A value of which only a log can tell is a case once a log has told of it.
    told = sum(
        old["allowed"] and new is not old for old, new in zip(before, anomalies, strict=True)
    )
    anomalies.sort(key=lambda one: bool(one["allowed"]))
    return row | {
        "never_count": row["never_count"] - freed,
        "allowed_count": row["allowed_count"] + freed,
        "case_count": (row["case_count"] or 0) + told,
        "anomalies": anomalies,
    }


def _doubted(row: dict[str, Any]) -> dict[str, Any]:
    """Return the finding of a key whose logs were not read: its client may have sent again."""
    never = row["never_count"]
    if not never:
        return row
    doubt = f"{never} duplicates of {row['key']} may be of its clients: none of its logs was read"
    return row | {
        "never_count": 0,
        "allowed_count": row["allowed_count"] + never,
        "anomalies": [one | {"allowed": True} for one in row["anomalies"]],
        "unknown": row["unknown"] or doubt,
    }


def _by_logs(key: str, anomaly: dict[str, Any], copies: _Copies) -> dict[str, Any]:
    duplicate = Proof.of_columns(anomaly)
    of_nodes = copies.get((key, int(duplicate.fact("value"))), {})
    for node, epochs in of_nodes.items():
        twice = [epoch for epoch, count in Counter(epochs.values()).items() if count > 1]
        if twice and twice[0][0] >= 0:
            proof = duplicate.further(
                ": the log of {node} has it twice in {epoch}", node=node, epoch=_named(twice[0])
            )
            return {"allowed": False, **proof.columns()}
    if not _sent_again(anomaly["offsets"], of_nodes):
        return anomaly
    own = sorted({epoch for one in of_nodes.values() for epoch in one.values()})
    proof = duplicate.further(
        f"{_AGAIN}{{epochs}}",
        epochs=Proof.joined(", ", map(_named, own)),
    )
    return {"allowed": True, **proof.columns()}


def _sent_again(offsets: Sequence[int], of_nodes: Mapping[str, Mapping[int, _Epoch]]) -> bool:
    """Return whether each copy stands in an epoch of its own, the same one in every log."""
    found = [{one[offset] for one in of_nodes.values() if offset in one} for offset in offsets]
    epochs = {epoch for copy in found for epoch in copy}
    told_apart = all(len(copy) == 1 for copy in found) and len(epochs) == len(found)
    return told_apart and all(producer_id >= 0 for producer_id, _ in epochs)


def _named(epoch: _Epoch) -> Proof:
    producer_id, producer_epoch = epoch
    return Proof.of(
        "{producer_epoch} of producer id {producer_id}",
        producer_epoch=producer_epoch,
        producer_id=producer_id,
    )


def _values_found(findings: pa.Table) -> dict[str, frozenset[int]]:
    """Return the values that stand twice, by key."""
    mine = findings.filter(pc.equal(findings["check"], _NAME))
    values = {
        row["key"]: frozenset(value for one in row["anomalies"] for value in one["values"])
        for row in mine.select(["key", "anomalies"]).to_pylist()
    }
    return {key: found for key, found in values.items() if found}


def _copies(file: SealedFile, *, wanted: Mapping[str, frozenset[int]]) -> pa.Table:
    """Return COPIES of these values in a file of `replica_records`, which it reads whole.

    And the first row of each key that has any.
    """
    rows = rows_in(file, "replica_records").select(COPIES.names).cast(COPIES)
    found = [COPIES.empty_table()]
    for key, values in wanted.items():
        of_key = rows.filter(pc.equal(rows["key"], key))
        several = pc.is_in(of_key["value"], value_set=pa.array(sorted(values), pa.int64()))
        found += [of_key.slice(0, 1), of_key.filter(several)]
    return pa.concat_tables(found)


CHECKS: Final = (ENTRY,)
