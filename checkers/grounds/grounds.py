"""The grounds of a verdict: enough was done, and enough went wrong, to mean something; and figures.

A cluster that does nothing breaks no promise, and faults that did nothing prove nothing. A run
without any fault (a control) has its grounds in sends, polls and final reads alone.

Faults are judged by kind (`nemesis.verbs.registry`). A fault that was drawn may meet nothing: a
delay on an idle link is counted, and spoils nothing. Where no client can be served by design (the
only replica is down), the scenario says during which kinds clients must be served. A kind that was
drawn once or twice, and is not demanded, may have had no time for it (`to_be_served`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Kind, Strength
from fencepost.checkers.grounds.fault_kinds import (
    FaultKind,
    figures_of,
    kind_of_row,
    kinds_of_run,
    to_be_served,
)
from fencepost.checkers.grounds.history_summary import HistorySummary
from fencepost.checkers.grounds.operations import BUCKETS_AN_OCTAVE, FaultWindow
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.beat import STALL
from fencepost.history.errors import registry
from fencepost.history.manifest import Manifest, NemesisWork, RunState
from fencepost.history.operation import F, Outcome
from fencepost.history.schema import CUT_SEGMENTS

_TIMES: Final = ("before", "during", "between", "after")
_FAULT_FIGURES_MAX: Final = 100
"""Faults with figures of their own; hours of faults are better read from the tables."""
_STALLED_SHARE_MAX: Final = 0.1
"""A run that stood still for a larger share of its time shows the machine, not the cluster."""
_QUANTILES: Final = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "max": 1.0}


def fault_windows(faults: pa.Table) -> tuple[FaultWindow, ...]:
    """Return when each fault that took effect was in effect, in the order of the table."""
    return tuple(
        FaultWindow(
            fault=row["index"],
            kind=kind_of_row(row),
            effect_ns=row["effect_ns"],
            end_ns=OPEN_NS if row["end_ns"] is None else row["end_ns"],
        )
        for row in faults.to_pylist()
        if row["effect_ns"] is not None
    )


def course(manifest: Manifest, samples: pa.Table, faults: pa.Table) -> CheckResult:
    """Check that the run went as planned to its end; otherwise the reason says what did not.

    `faults` tell of times in which all processes of the run stood still.
    `samples` tell of clients whose recording was found cut short when it was sealed.
    """
    reasons = list(manifest.shortfalls)
    cut = samples.filter(pc.equal(samples["metric"], CUT_SEGMENTS))
    reasons += [f"the recording of {client} is cut short" for client in cut["source"].to_pylist()]
    if manifest.end_ns is None or manifest.failure:
        reasons.append(manifest.failure or "the recording did not come to its end")
    elif manifest.state is RunState.FAILED:
        reasons.append("the run failed")
    healed_ns, end_ns = manifest.healed_ns, manifest.end_ns
    if end_ns is not None and not 0 <= (healed_ns or 0) <= end_ns:
        reasons.append(f"healing ended at {healed_ns} ns, and the run at {end_ns} ns")
    told = " ".join(manifest.shortfalls)
    if manifest.damages and manifest.damages[0] not in told:
        reasons.append(f"not all that lies on the disks could be read: {manifest.damages[0]}")
    stalled_s = _stalled_s(faults)
    if stalled_s > _STALLED_SHARE_MAX * (manifest.end_ns or 0) / 1e9 > 0:
        whole_s = (manifest.end_ns or 0) / 1e9
        words = f"all processes of the run stood still for {stalled_s:.1f} of {whole_s:.1f} s"
        reasons.append(f"{words}: the machine was stopped, or had no room")
    figures = _work(manifest.nemesis) | ({"machine_stalled_s": stalled_s} if stalled_s else {})
    return replace(_result("as-planned", "; ".join(reasons)), case_count=1, figures=figures)


def _stalled_s(faults: pa.Table) -> float:
    """Return for how long all processes of the run stood still."""
    rows = (row for row in faults.to_pylist() if row["fault"] == STALL)
    return float(sum((row["end_ns"] - row["begin_ns"]) / 1e9 for row in rows))


def _work(work: NemesisWork | None) -> dict[str, float]:
    """Return the figures of the random faults: how many a minute, and how long there was none."""
    if work is None:
        return {}
    waits = {f"waited_for_{kind.replace(' ', '_')}_s": s for kind, s in work.waits_s.items()}
    return {"faults_a_minute": work.faults_a_minute, "nemesis_idle_max_s": work.idle_s, **waits}


def run_grounds(
    summary: HistorySummary | None, *, why_no_summary: str, faults: pa.Table, manifest: Manifest
) -> tuple[CheckResult, ...]:
    """Return statistics, fault effects and evidence, from the sums of the operations."""
    kinds = kinds_of_run(manifest, faults, summary)
    effects = replace(
        _result("fault-effects", without_effect(manifest, kinds, faults)),
        case_count=len(faults),
        figures=figures_of(kinds),
    )
    if summary is None:
        return (_result("statistics", why_no_summary), effects, _result("evidence", why_no_summary))
    statistics = CheckResult(
        check="statistics",
        validity=Validity.VALID,
        case_count=summary.row_count,
        figures=dict(_figures(summary, fault_count=len(faults))),
    )
    found = tuple(_evidence(summary, to_be_served(manifest, kinds)))
    lacking = "; ".join(words for words, count in found if not count)
    return (statistics, effects, replace(_result("evidence", lacking), case_count=len(found)))


def without_effect(manifest: Manifest, kinds: Sequence[FaultKind], faults: pa.Table) -> str:
    """Return in words which required faults had no effect; empty if all had one."""
    # A stall of the machine is none of the faults that somebody asked for.
    effective = {one.kind for one in kinds if one.effect_count and one.kind != STALL}
    # A trial's storm does not say beforehand which kinds it may draw.
    begun = (one.kind for one in kinds if one.begun_count and one.kind != STALL)
    asked = ", ".join(manifest.asked_faults or (begun if manifest.drawn else ()))
    if asked and not effective:
        return f"none of the faults that were asked for ({asked}) took effect"
    missing = [kind for kind in manifest.required_faults if kind not in effective]
    reasons = [f"the scenario demands {kind}, and none took effect" for kind in missing]
    if not manifest.drawn and (unseen := _unseen(faults)):
        reasons.append(unseen)
    return "; ".join(reasons)


def _unseen(faults: pa.Table) -> str:
    unseen = [row for row in faults.to_pylist() if row["effect_ns"] is None]
    if not unseen:
        return ""
    first = unseen[0]
    return (
        f"{len(unseen)} of {len(faults)} faults were not seen to take effect; the first is "
        f"{first['fault']} of {', '.join(first['targets'])} (fault {first['index']})"
    )


def _evidence(
    summary: HistorySummary, owed: Mapping[str, Sequence[FaultKind]]
) -> Iterator[tuple[str, int]]:
    """Yield each need of a verdict: the words for its absence, and how much of it there is."""
    yield "no send was acknowledged", _count(summary, F.SEND)
    yield "no ok poll returned a record", _count(summary, F.POLL, nonempty=True)
    yield "no final read is complete", len(summary.final_reads)
    for words, kinds in owed.items():
        sends_count = sum(one.acknowledged_sends_count or 0 for one in kinds)
        yield f"no send that was called during {words} was acknowledged", sends_count
        reads_count = sum(one.reads_count or 0 for one in kinds)
        yield f"no ok poll that was called during {words} returned a record", reads_count


def _count(summary: HistorySummary, f: F, *, nonempty: bool = False) -> int:
    """Count ok operations of all times."""
    return sum(
        count
        for called, count in summary.counts.items()
        if called.f is f
        and called.outcome is Outcome.OK
        and called.time in _TIMES
        and not (nonempty and called.empty)
    )


def _figures(summary: HistorySummary, *, fault_count: int) -> Iterator[tuple[str, float]]:
    yield "operations_count", summary.row_count
    yield "records_count", sum(summary.record_counts.values())
    yield "faults_count", fault_count
    yield from sorted(_counted(summary).items())
    for (f, error), count in sorted(summary.errors.items()):
        yield f"{_word(f)}_error_{error}_count", count
    # The meaning of these errors is not registered yet; until it is, their operations are info.
    known = {entry.name for entry in registry().values()}
    unexpected = (count for (_, error), count in summary.errors.items() if error not in known)
    yield "unexpected_errors_count", sum(unexpected)
    for f in F:
        buckets = summary.latencies.get(f, {})
        for name, milliseconds in _latencies(buckets):
            yield f"{_word(f)}_latency_{name}_ms", milliseconds


def _counted(summary: HistorySummary) -> Mapping[str, int]:
    """Return counts by kind, outcome and time; polls that returned nothing count separately."""
    figures: dict[str, int] = {}
    for called, count in summary.counts.items():
        if called.time not in _TIMES and not _is_early_fault(called.time):
            continue
        time = called.time if called.time in _TIMES else f"during_fault_{called.time}"
        empty = "_empty" if called.empty and called.f is F.POLL else ""
        name = f"{_word(called.f)}_{called.outcome}{empty}_{time}_count"
        figures[name] = figures.get(name, 0) + count
    return figures


def _is_early_fault(time: str) -> bool:
    """Return whether it is the number of one of the first faults; kinds have figures elsewhere."""
    return time.isdecimal() and int(time) < _FAULT_FIGURES_MAX


def _latencies(buckets: Mapping[int, int]) -> Iterator[tuple[str, float]]:
    """Yield quantiles, as the upper bound of the bucket that each falls into."""
    total = sum(buckets.values())
    for name, share in _QUANTILES.items() if total else ():
        reached = 0
        for bucket in sorted(buckets):
            reached += buckets[bucket]
            if reached >= share * total:
                yield name, _upper_ns(bucket) / 1e6
                break


def _upper_ns(bucket: int) -> float:
    upper: float = 2 ** ((bucket + 1) / BUCKETS_AN_OCTAVE)
    return upper


def _word(f: F) -> str:
    return f.value.replace("-", "_")


def _result(name: str, reason: str) -> CheckResult:
    validity = Validity.UNKNOWN if reason else Validity.VALID
    return CheckResult(check=name, validity=validity, reason=reason)


CHECKS: Final = (
    CatalogueEntry.of(
        """G0 as-planned: The run went as planned, to its end.

        The manifest has the end of the run, no failure, no damage of a disk that was read, a state
        other than failed, and no shortfall: every step of the play was done, every await was met,
        no node or client died unasked, the cluster recovered after healing, every key was read to
        its end, no client's recording is cut short, and random faults were never idle for more than
        a minute, and all processes of the run (by the beat of the harness and of each client) stood
        still for no more than a tenth of its time. Figures: faults a minute, the longest time in
        which nothing was broken though something was due, and what was waited for.

        Meaning: A schedule that was not performed proves nothing about what it would have done.
        Case: a run that was recorded to its end
        Source: history/manifest.py, shortfalls
        """,
        kind=Kind.GROUND,
    ),
    CatalogueEntry.of(
        """G1 statistics: What was done, and how it went.

        Operations by kind and outcome before, during, between and after the faults and during each
        fault, each counted where it was called; errors by name, and how many are not in the error
        registry; latencies.

        Meaning: Figures for people; they decide nothing.
        Case: an operation
        Source: Jepsen, checkers `stats` and `perf`
        """,
        kind=Kind.GROUND,
        strength=Strength.FIGURE,
        needs=("operations", "records"),
    ),
    CatalogueEntry.of(
        """G2 fault-effects: The faults that were asked for took effect.

        Of the kinds of fault that the run was asked for, or that it drew, some fault has the time
        at which its effect was seen; so has one of each kind that the scenario demands (`require:
        {faults: […]}`), and each step of a play. A drawn fault without effect is counted, and no
        more.

        Meaning: A run whose faults did nothing proves nothing about faults.
        Case: a fault that began
        Source: history/schema.py, FAULTS
        """,
        kind=Kind.GROUND,
        needs=("operations", "records"),
    ),
    CatalogueEntry.of(
        """G3 evidence: Enough was done to tell.

        There are acknowledged sends, ok polls that returned something and complete final reads; and
        for each kind of fault that took effect, or of these each that the scenario names (`require:
        {served: […]}`), acknowledged sends and non-empty ok polls among the operations called
        during one, from its effect to its heal being seen. Of drawn faults: during any, and during
        each kind that the scenario demands or that took effect three times.

        Meaning: A cluster that does nothing breaks no promise.
        Case: something that has to be there: acknowledged sends, reads, final reads, and both
        during each kind of fault
        Source: Jepsen, checker `stats`
        """,
        kind=Kind.GROUND,
        needs=("operations", "records"),
    ),
)
