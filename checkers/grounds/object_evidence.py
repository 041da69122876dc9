"""The grounds of a run whose clients used objects: enough was done to tell, and enough went wrong.

Every workload of objects is asked for them, of whatever system it is; a history of others, which no
harness recorded, is not. A kind of fault lasts a second at least, for those who were called then.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.grounds.fault_kinds import figures_of, kinds_of_run, to_be_served
from fencepost.checkers.grounds.grounds import fault_windows, without_effect
from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.runner.tables import SealedFile, load_faults, source_in
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.manifest import Manifest
from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.operation import Outcome
from fencepost.history.schema import RECORD_BUCKET_COUNT

_SHORTEST_NS: Final = 1_000_000_000
_READ: Final = "read"
_CHANGE: Final = "write"
_USES: Final = {_CHANGE: "change", _READ: "read"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectTally:
    """The ok operations of a file, counted."""

    ok: Mapping[str, int] = field(default_factory=dict)
    """By f."""
    served: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Those that were called during a kind of fault, by the kind and the use that they are of."""


def tally_of(
    batches: Iterable[pa.RecordBatch],
    windows: Sequence[FaultWindow],
    use_of: Callable[[str], str | None],
) -> ObjectTally:
    """Count the operations of batches with `f`, `outcome` and `call_ns`.

    `use_of`: the use that an f is of; None: none that is counted during faults.
    """
    spans = {kind: _spans(windows, kind) for kind in dict.fromkeys(one.kind for one in windows)}
    ok: Counter[str] = Counter()
    served: Counter[tuple[str, str]] = Counter()
    for batch in batches:
        good = batch.filter(pc.equal(batch.column("outcome"), Outcome.OK.value))
        for f in pc.unique(good.column("f")).to_pylist():
            mine = good.filter(pc.equal(good.column("f"), f))
            ok[f] += mine.num_rows
            use = use_of(f)
            calls_ns = mine.column("call_ns").to_numpy()
            for kind, (begin_ns, end_ns) in spans.items() if use is not None else ():
                place = np.searchsorted(begin_ns, calls_ns, side="right") - 1
                during = (place >= 0) & (calls_ns <= end_ns[np.maximum(place, 0)])
                served[kind, str(use)] += int(during.sum())
    return ObjectTally(ok=dict(ok), served=dict(served))


def _spans(
    windows: Sequence[FaultWindow], kind: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return when faults of a kind begin, in order, and by when all that had begun had ended."""
    mine = sorted(
        (one.effect_ns, max(one.end_ns, one.effect_ns + _SHORTEST_NS))
        for one in windows
        if one.kind == kind
    )
    begin_ns, end_ns = np.array(mine, np.int64).T
    return begin_ns, np.maximum.accumulate(end_ns)


def evidence(
    check: str,
    manifest: Manifest,
    faults: pa.Table,
    tallies: Sequence[ObjectTally],
    *,
    demanded: Sequence[str],
    uses: Mapping[str, str],
) -> CheckResult:
    """Return whether each demanded f is ok somewhere, and each use during each kind of fault.

    `uses`: the words of each.
    """
    ok, served = Counter[str](), Counter[tuple[str, str]]()
    for tally in tallies:
        ok.update(tally.ok)
        served.update(tally.served)
    lacking = [f"no {f} is ok" for f in demanded if not ok[f]]
    kinds = kinds_of_run(manifest, faults, None)
    lacking += filter(None, [without_effect(manifest, kinds, faults)])
    cases = len(demanded)
    for during, owed in to_be_served(manifest, kinds).items():
        for use, words in uses.items():
            cases += 1
            if not any(served[one.kind, use] for one in owed):
                lacking.append(f"no {words} that was called during {during} is ok")
    effective = [one.kind for one in kinds if one.effect_count]
    names = dict.fromkeys((*demanded, *sorted(ok)))
    return CheckResult(
        check=check,
        validity=Validity.UNKNOWN if lacking else Validity.VALID,
        case_count=cases,
        reason="; ".join(lacking),
        figures={f"{f.replace('-', '_')}_ok_count": ok[f] for f in names}
        | figures_of(kinds)
        | {f"{kind}_{use}s_count": served[kind, use] for kind in effective for use in uses},
    )


def _entry(number: int, name: str, what: str, table: str) -> CatalogueEntry:
    return CatalogueEntry.of(
        f"""G{number} {name}: Enough was done to {what} to tell.

        Some of the faults that were asked for took effect, and each kind that the scenario demands.
        There are ok operations of each function that the run says its clients set out to do, or
        else a change and a read. During each kind of fault that took effect, or of these each that
        the scenario names (`require: {{served: […]}}`), a change and a read were called that are
        ok.
        Of drawn faults: during any, and during each kind that the scenario demands or that took
        effect three times.

        Meaning: A system that does nothing breaks no promise.
        Case: something that has to be there: operations, and changes and reads during each kind of
        fault
        Source: Jepsen, checker `stats`
        """,
        kind=Kind.GROUND,
        needs=(table, "faults"),
    )


def _use_of(f: str) -> str:
    return _READ if f == _READ else _CHANGE


def _tally(file: SealedFile, *, table: str, windows: Sequence[FaultWindow]) -> ObjectTally:
    return tally_of(source_in(file, table)(("f", "outcome", "call_ns")), windows, _use_of)


def _answer(question: Question) -> GroupAnswers:
    (check,) = question.checks
    manifest = question.manifest
    table = MODEL_TABLES[Model(manifest.model)]
    faults = load_faults(question.run)
    files = [question.file(table, bucket=bucket) for bucket in range(RECORD_BUCKET_COUNT)]
    work = partial(_tally, table=table, windows=fault_windows(faults))
    answers = question.each_file(files, work)
    failures = tuple(dict.fromkeys(one.failure for one in answers if one.failure))
    if failures:
        return GroupAnswers.unknown(question.checks, "; ".join(failures))
    tallies = [one.content for one in answers if one.content is not None]
    # Of each use some function that was done; if none was, there is no such operation.
    done = {_use_of(f): f for tally in tallies for f in tally.ok}
    demanded = tuple(manifest.asked_operations) or [done.get(use, _USES[use]) for use in _USES]
    found = evidence(check, manifest, faults, tallies, demanded=demanded, uses=_USES)
    return GroupAnswers(results=(found,), anomalies=ANOMALIES.empty_table())


CHECKS: Final = tuple(
    CheckGroup(name=name, entries=(_entry(number, name, what, table),), answer=_answer)
    for number, name, what, table in (
        (13, "object-evidence", "objects", "model_operations"),
        (14, "list-evidence", "lists", "micro_operations"),
    )
)
