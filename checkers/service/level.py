"""The pass over a run's asks, and the level of service that its sums come to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fencepost.checkers.grounds.fault_kinds import kinds_of_run
from fencepost.checkers.grounds.grounds import fault_windows
from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.runner.tables import SealedFile, byte_count, cluster_file, operation_files
from fencepost.checkers.runner.tasks import TaskSession, run_tasks
from fencepost.checkers.service.silences import KeySilence
from fencepost.checkers.service.uses import USES, SilencesOfKey, UseSums, sums_of_files
from fencepost.checkers.service_level import (
    SILENCE_S_MIN,
    FaultAmong,
    FaultService,
    LossLevel,
    ServiceLevel,
    SilenceOf,
    UseService,
)
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.beat import STALL
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.models import MODEL_TABLES
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT

_NS: Final = 1_000_000_000
_AMONG_MAX: Final = 4
"""The faults that a silence names."""
_LOSSES: Final = {
    "sends": ("records", ("lost-write", "unseen")),
    "writes": ("writes", ("lost-acknowledged-write",)),
}
"""By use: what can be lost, and the checks that find it. No two count the same loss."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServicePass:
    """The sums of a run's asks."""

    uses: Mapping[str, UseSums]
    """By the name of the use, in the order of `USES`; those without an ask are left out."""
    main: tuple[str, ...]
    """The uses of the table that the run is about: what a scenario bounds."""
    failures: tuple[str, ...]
    """Why some files could not be summed up."""
    seconds: float


@dataclass(frozen=True, slots=True)
class _Task:
    table: str
    files: tuple[SealedFile, ...]


def service_pass(
    run: RunDirectory,
    manifest: Manifest,
    faults: pa.Table,
    *,
    session: TaskSession,
    budget_s: float,
) -> ServicePass:
    """Sum up the asks of every use that the run recorded: each table in tasks of its own."""
    try:
        tasks = list(_tasks(run, manifest))
    except HarnessError as error:
        return ServicePass(uses={}, main=(), failures=(str(error),), seconds=0.0)
    bounds = manifest.required_bounds
    work = partial(
        _sums,
        windows=fault_windows(faults),
        least_ns=round(min(SILENCE_S_MIN, bounds.get("unavailable_max_s", SILENCE_S_MIN)) * _NS),
        bound_ns=round(bounds["p99_max_ms"] * 1e6) if "p99_max_ms" in bounds else None,
    )
    size = sum(byte_count(file) for task in tasks for file in task.files)
    answers = run_tasks(session, tasks, work, budget_s=budget_s, bytes_in_all=size)
    uses = {use.name: UseSums() for task in tasks for use in USES[task.table]}
    for answer in answers:
        for use, sums in zip(USES[answer.task.table], answer.content or (), strict=False):
            uses[use.name].merge(sums)
    return ServicePass(
        uses={name: sums for name, sums in uses.items() if sums.ask_count},
        main=tuple(use.name for task in tasks[:1] for use in USES[task.table]),
        failures=tuple(dict.fromkeys(one.failure for one in answers if one.failure)),
        seconds=sum(one.seconds for one in answers),
    )


def _tasks(run: RunDirectory, manifest: Manifest) -> Iterator[_Task]:
    for table in USES:
        if table not in manifest.tables:
            continue
        if table == "operations":
            yield _Task(table, operation_files(run, manifest))
        elif table not in MODEL_TABLES.values():
            yield _Task(table, (cluster_file(run, manifest, table),))
        # Another tool's history may have no clock at all.
        elif manifest.cluster:
            for bucket in range(RECORD_BUCKET_COUNT):
                yield _Task(table, (cluster_file(run, manifest, table, bucket=bucket),))


def _sums(
    task: _Task, *, windows: Sequence[FaultWindow], least_ns: int, bound_ns: int | None
) -> list[UseSums]:
    uses = USES[task.table]
    return sums_of_files(task.files, uses, windows, least_ns=least_ns, bound_ns=bound_ns)


def service_level(
    manifest: Manifest, faults: pa.Table, found: ServicePass, results: Mapping[str, CheckResult]
) -> ServiceLevel:
    """Return the level of service of a run, from its sums and the answers of its checks."""
    kinds = kinds_of_run(manifest, faults, None)
    rows = faults.to_pylist()
    return ServiceLevel(
        duration_s=None if manifest.end_ns is None else manifest.end_ns / _NS,
        loss=next(_losses(found, results), None),
        uses=tuple(_use(name, sums, rows) for name, sums in found.uses.items()),
        effective_faults={
            one.kind: one.effect_count for one in kinds if one.effect_count and one.kind != STALL
        },
    )


def _losses(found: ServicePass, results: Mapping[str, CheckResult]) -> Iterator[LossLevel]:
    for name, (subject, checks) in _LOSSES.items():
        asked = [results[one] for one in checks if one in results]
        if not asked or name not in found.uses:
            continue
        known = [one for one in asked if one.validity is not Validity.UNKNOWN]
        lost = sum(one.anomaly_count for one in known)
        yield LossLevel(
            subject=subject,
            acknowledged_count=found.uses[name].acknowledged_count,
            lost_count=lost if lost or len(known) == len(asked) else None,
            allowed_count=sum(one.allowed_count for one in known),
        )


def _use(name: str, sums: UseSums, faults: Sequence[Mapping[str, Any]]) -> UseService:
    latencies = sums.latencies
    spans = list(_long(sums.silences))
    least_ns = round(SILENCE_S_MIN * _NS)
    longest = max(
        ((key, one) for key, mine in sums.silences.items() for one in mine.kept),
        key=lambda found: (found[1].length_ns, -found[1].begin_ns),
        default=None,
    )
    kinds = {kind: one.latency() for kind, one in latencies.by_kind.items()}
    each = {index: one.latency() for index, one in sorted(latencies.by_fault.items())}
    return UseService(
        use=name,
        acknowledged_count=sums.acknowledged_count,
        silence_count=len(spans),
        unavailable_s=_covered_ns(spans) / _NS,
        longest=(_told(*longest, faults) if longest and longest[1].length_ns >= least_ns else None),
        outside=latencies.outside.latency(),
        during=latencies.during.latency(),
        by_kind={kind: one for kind, one in kinds.items() if one is not None},
        by_fault=tuple(
            FaultService(fault=index, latency=one) for index, one in each.items() if one is not None
        ),
    )


def _long(silences: Mapping[str, SilencesOfKey]) -> Iterator[tuple[int, int]]:
    least_ns = round(SILENCE_S_MIN * _NS)
    for mine in silences.values():
        for begin_ns, end_ns in zip(mine.begins_ns, mine.ends_ns, strict=True):
            if end_ns - begin_ns >= least_ns:
                yield begin_ns, end_ns


def _covered_ns(spans: Sequence[tuple[int, int]]) -> int:
    """Return the time that these spans cover, what several cover once."""
    if not spans:
        return 0
    begin_ns, end_ns = np.array(sorted(spans), dtype=np.int64).T
    reach_ns = np.maximum.accumulate(end_ns)
    from_ns = np.maximum(begin_ns, np.concatenate(([0], reach_ns[:-1])))
    return int(np.maximum(end_ns - from_ns, 0).sum())


def _told(key: str, one: KeySilence, faults: Iterable[Mapping[str, Any]]) -> SilenceOf:
    overlaps = [
        (
            min(one.end_ns, one.end_ns if row["end_ns"] is None else row["end_ns"])
            - max(one.begin_ns, row["effect_ns"]),
            row,
        )
        for row in faults
        if row["effect_ns"] is not None
    ]
    among = sorted((pair for pair in overlaps if pair[0] > 0), key=lambda pair: -pair[0])
    return SilenceOf(
        key=key,
        begin_s=one.begin_ns / _NS,
        length_s=one.length_ns / _NS,
        faults=tuple(
            FaultAmong(index=row["index"], fault=row["fault"], targets=tuple(row["targets"]))
            for _, row in among[:_AMONG_MAX]
        ),
    )
