"""Duplicates that the client made: a value that it sent again under another producer epoch.

A broker tells what is sent again from what is new by producer id, producer epoch and sequence
number. A client that begins another epoch, or gets another id, starts its sequences anew, and what
it then sends again of what it had in flight is new to every broker: the second copy does not show
whether the first was appended. So the brokers caused a value that stands twice in one epoch, and
the client caused one whose copies all stand in epochs of their own. The logs say which: every batch
carries both.

librdkafka begins an epoch, for all its partitions at once, when a batch of one partition is out of
sequence because the one before it was refused (NOT_ENOUGH_REPLICAS), so the copies may be of
another partition than the trouble was. Whether the answer that made it do so was right is not asked
here. Unspelled anomalies (`PROOFS_MAX`) stay as they are, and so does a value of which some copy
is in no log any more, or differs from replica to replica.

Source: KIP-98, KIP-360; librdkafka, `rd_kafka_idemp_drain_epoch_bump`.
"""

import logging
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.finding_rows import FINDINGS
from checkers.proof import Proof
from checkers.runner.tables import (
    SealedFile,
    cluster_file,
    rows_in,
    run_files,
)
from checkers.runner.tasks import TaskSession
from history.manifest import Manifest
from history.run_directory import RunDirectory
from history.writer import bucket_of

__all__ = ["COPIES", "client_made", "with_client_made"]

COPIES: Final = pa.schema(
    [
        # A row a copy of a value in a replica's log; -1 without idempotence.
        pa.field("key", pa.string(), nullable=False),
        pa.field("value", pa.int64(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int16(), nullable=False),
    ]
)

_LOG: Final = logging.getLogger(__name__)
_NAME: Final = "duplicate"
_Producers = Mapping[tuple[str, int, int], set[tuple[int, int]]]
"""(key, value, offset) → the (id, epoch) under which replicas have it."""


def with_client_made(
    findings: pa.Table,
    *,
    run: RunDirectory,
    manifest: Manifest,
    session: TaskSession,
    budget_s: float,
) -> pa.Table:
    """Return FINDINGS in which duplicates that the client made are allowed, as far as logs tell."""
    wanted = _accused(findings)
    if not wanted or "replica_records" not in manifest.tables:
        return findings
    files = [
        cluster_file(run, manifest, "replica_records", bucket=bucket)
        for bucket in sorted({bucket_of(key) for key in wanted})
    ]
    answers = run_files(session, files, partial(_copies, wanted=wanted), budget_s=budget_s)
    for answer in answers:
        if answer.failure:
            # A log that could not be read excuses no broker.
            _LOG.warning("the logs were not asked whose the duplicates are: %s", answer.failure)
            return findings
    copies = [answer.content for answer in answers if answer.content is not None]
    return client_made(findings, pa.concat_tables(copies))


def client_made(findings: pa.Table, copies: pa.Table) -> pa.Table:
    """Return FINDINGS with those duplicates allowed whose copies stand in epochs of their own.

    `copies`: COPIES of the values accused, of all replicas.
    """
    producers: dict[tuple[str, int, int], set[tuple[int, int]]] = {}
    for row in copies.to_pylist():
        place = (row["key"], row["value"], row["offset"])
        producers.setdefault(place, set()).add((row["producer_id"], row["producer_epoch"]))
    mine = pc.fill_null(pc.equal(findings["check"], _NAME), False)
    rows = [_judged(row, producers) for row in findings.filter(mine).to_pylist()]
    others = findings.filter(pc.invert(mine))
    return pa.concat_tables([others, pa.Table.from_pylist(rows, schema=FINDINGS)])


def _judged(row: dict[str, Any], producers: _Producers) -> dict[str, Any]:
    anomalies = [_excused(row["key"], one, producers) for one in row["anomalies"]]
    freed = sum(one["allowed"] for one in anomalies) - sum(
        one["allowed"] for one in row["anomalies"]
    )
    anomalies.sort(key=lambda one: bool(one["allowed"]))
    return row | {
        "never_count": row["never_count"] - freed,
        "allowed_count": row["allowed_count"] + freed,
        "anomalies": anomalies,
    }


def _excused(key: str, anomaly: dict[str, Any], producers: _Producers) -> dict[str, Any]:
    if anomaly["allowed"]:
        return anomaly
    duplicate = Proof.of_columns(anomaly)
    value = int(duplicate.fact("value"))
    found = [producers.get((key, value, offset), set()) for offset in anomaly["offsets"]]
    epochs = sorted({epoch for copy in found for epoch in copy})
    told_apart = all(len(copy) == 1 for copy in found) and len(epochs) == len(found)
    if not told_apart or any(producer_id < 0 for producer_id, _ in epochs):
        return anomaly
    named = (
        Proof.of(
            "{producer_epoch} of producer id {producer_id}",
            producer_epoch=producer_epoch,
            producer_id=producer_id,
        )
        for producer_id, producer_epoch in epochs
    )
    proof = duplicate.further(
        ": sent again by its client, in producer epochs {epochs}", epochs=Proof.joined(", ", named)
    )
    return {"allowed": True, **proof.columns()}


def _accused(findings: pa.Table) -> dict[str, frozenset[int]]:
    """Return the values that are never allowed to be where they are, by key."""
    mine = findings.filter(pc.equal(findings["check"], _NAME))
    values = {
        row["key"]: frozenset(
            value for one in row["anomalies"] if not one["allowed"] for value in one["values"]
        )
        for row in mine.select(["key", "anomalies"]).to_pylist()
    }
    return {key: found for key, found in values.items() if found}


def _copies(file: SealedFile, *, wanted: Mapping[str, frozenset[int]]) -> pa.Table:
    """Return COPIES of these values in a file of `replica_records`, which it reads whole."""
    rows = rows_in(file, "replica_records")
    hits = (
        pc.and_(
            pc.equal(rows["key"], key),
            pc.is_in(rows["value"], value_set=pa.array(sorted(values), pa.int64())),
        )
        for key, values in wanted.items()
    )
    return pa.concat_tables(rows.filter(hit).select(COPIES.names).cast(COPIES) for hit in hits)
