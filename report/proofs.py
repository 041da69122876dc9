"""Anomalies with all that a reader needs to agree: meaning, rule, operations, records, faults."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.entry import CatalogueEntry
from fencepost.history.models import Model
from fencepost.report.anomalies import Record, ShownOperation, operations_at, records_of
from fencepost.report.evidence import Evidence, evidence_of
from fencepost.report.faults import FaultSpan, faults_open
from fencepost.report.intervals import OPERATIONS_MAX, picture_of
from fencepost.report.lanes import AnomalyMark
from fencepost.report.reading import Reading

_STEPS_MAX: Final = 8
"""The bound on operations shown of one anomaly: a few explain a duplicate of a thousand reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofStep:
    """One operation of a proof, what of it matters, and the faults that were open meanwhile."""

    operation: ShownOperation
    records: tuple[Record, ...]
    faults: tuple[FaultSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownProof:
    """One anomaly."""

    anomaly: Anomaly
    steps: tuple[ProofStep, ...]
    from_ns: int | None
    """The first call of its operations; None if none of them was found."""
    to_ns: int
    left_out: int
    """The number of operations that are not shown."""
    evidence: tuple[Evidence, ...]
    """The facts that the proof rests on."""
    intervals: Markup | None = None
    """The picture of the times of operations on an object; None of any other anomaly."""

    @property
    def mark(self) -> AnomalyMark | None:
        """The mark of the anomaly in the plots; None of one that is allowed or has no time."""
        if self.from_ns is None or self.anomaly.allowed:
            return None
        return AnomalyMark(
            time_ns=self.from_ns, check=self.anomaly.check, detail=self.anomaly.detail
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOfProofs:
    """The anomalies of one check, and the smallest few of them in full."""

    check: str
    entry: CatalogueEntry | None
    """The catalogue's entry of the check; None if the catalogue does not have it (any more)."""
    illegal_count: int
    allowed_count: int
    row_count: int
    """The number of anomalies that the file spells out."""
    proofs: tuple[ShownProof, ...]
    link: str
    """The link to that file, relative to the page."""


def proofs_of(reading: Reading) -> tuple[GroupOfProofs, ...]:
    """Look up the operations and records of every anomaly that the page shows."""
    wanted = {
        index
        for group in reading.anomalies
        for anomaly in group.smallest
        for index in anomaly.operations[:_STEPS_MAX]
    }
    operations = operations_at(reading.operation_files, wanted)
    return tuple(
        GroupOfProofs(
            check=group.check,
            entry=known_entry(group.check),
            illegal_count=group.illegal_count,
            allowed_count=group.allowed_count,
            row_count=group.row_count,
            link=f"./anomalies/{quote(group.check)}.parquet",
            proofs=tuple(
                _proof(anomaly, operations=operations, reading=reading)
                for anomaly in group.smallest
            ),
        )
        for group in reading.anomalies
    )


def known_entry(check: str) -> CatalogueEntry | None:
    """Return the catalogue's entry; None for a check of an older or newer catalogue."""
    try:
        return entry_of(check)
    except KeyError:
        return None


def _proof(
    anomaly: Anomaly, *, operations: dict[int, ShownOperation], reading: Reading
) -> ShownProof:
    shown = [operations[index] for index in anomaly.operations[:_STEPS_MAX] if index in operations]
    records = records_of(reading.record_files, anomaly)
    intervals = _intervals(anomaly, reading)
    drawn_count = OPERATIONS_MAX if intervals else len(shown)
    return ShownProof(
        anomaly=anomaly,
        steps=tuple(
            ProofStep(
                operation=operation,
                records=records.get(operation.index, ()),
                faults=_meanwhile(operation, reading.spans, end_ns=reading.end_ns),
            )
            for operation in shown
        ),
        from_ns=min((operation.call_ns for operation in shown), default=None),
        to_ns=max((operation.return_ns or operation.call_ns for operation in shown), default=0),
        left_out=max(0, len(anomaly.operations) - drawn_count),
        evidence=evidence_of(anomaly.proof),
        intervals=intervals,
    )


def _intervals(anomaly: Anomaly, reading: Reading) -> Markup | None:
    if not reading.model_files or not anomaly.operations or reading.manifest is None:
        return None
    return picture_of(reading.model_files, anomaly, Model(reading.manifest.model))


def _meanwhile(
    operation: ShownOperation, spans: Sequence[FaultSpan], *, end_ns: int
) -> tuple[FaultSpan, ...]:
    """Return the faults open between call and return; up to the end if it never returned."""
    to_ns = end_ns if operation.return_ns is None else operation.return_ns
    return faults_open(spans, from_ns=operation.call_ns, to_ns=to_ns, run_end_ns=end_ns)
