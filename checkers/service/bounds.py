"""S1 and S2: the bounds of service that a scenario promises (`require`), and what breaks them.

Each is proven by the operations. A silence is one because nothing was acknowledged, so it is proven
only where no operation can be missing: where the recording of a client is cut short, or the run has
no end, or its operations do not add up, the answer is unknown. The quantile is compared by counting
the asks above the bound, so it has no error of a histogram.

An operation of unknown fate is no acknowledgement, and waits until it returns. While all processes
of the run stood still (a *stall* of the machine), no request could be answered: a silence is
shortened by that time, and an ask that waited through any of it is during a fault.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.anomaly import ANOMALIES, Found, found
from fencepost.checkers.check_group import GroupAnswers
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.finding_rows import findings_table, found_row
from fencepost.checkers.proof import Proof
from fencepost.checkers.results import FileAnswers, anomalies_found, result_of
from fencepost.checkers.service.level import ServicePass
from fencepost.checkers.service.silences import KeySilence
from fencepost.checkers.service.uses import SilencesOfKey, UseSums
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.beat import STALL
from fencepost.history.manifest import Manifest
from fencepost.history.schema import CUT_SEGMENTS

_NS: Final = 1_000_000_000
_RECORDED_WHOLE: Final = ("dense-indices", "whole-run", "whole-znodes", "whole-history")
"""The assumptions that say that no operation is missing; a run is asked for some of them."""

LONG_SILENCE: Final = CatalogueEntry.of(
    """S1 long-silence: A key was silent for longer than the scenario allows.

    A silence of a key (a stretch of time at every moment of which some ask of it waits, and none is
    acknowledged), less the time in which all processes of the run stood still, is longer than
    `require: {unavailable_max: …}`. Asks are sends of records, or writes and reads of objects; an
    ask waits from its call to its return, and one without a return at its call.

    Meaning: Clients of that key could do nothing for longer than was promised.
    Case: a stretch of time between two acknowledgements of a key in which some ask waited
    Source: the scenario
    """,
    nearness=Nearness.REMAINS,
    bound="unavailable_max_s",
)
SLOW_P99: Final = CatalogueEntry.of(
    """S2 slow-p99: More asks outside faults were slow than the scenario allows.

    Of the acknowledged sends, or writes or reads of objects, that waited at no time in the reach of
    a fault (from its effect to the first acknowledgement of the key after its heal), more than one
    in a hundred took longer from call to return than `require: {p99_max: …}`.

    Meaning: The cluster was slower than was promised while nothing was broken.
    Case: an acknowledged ask outside faults
    Source: the scenario
    """,
    nearness=Nearness.REMAINS,
    bound="p99_max_ms",
)


def bounds_kept(
    names: Sequence[str],
    manifest: Manifest,
    faults: pa.Table,
    pass_: ServicePass,
    *,
    unproven_because: Sequence[str],
) -> GroupAnswers:
    """Judge the bounds of these names; `unproven_because`: why operations may be missing."""
    bounds = manifest.required_bounds
    stalls = [
        (row["begin_ns"], row["end_ns"] if row["end_ns"] is not None else row["begin_ns"])
        for row in faults.to_pylist()
        if row["fault"] == STALL
    ]
    uses = {name: pass_.uses[name] for name in pass_.main if name in pass_.uses}
    told = []
    for entry in (LONG_SILENCE, SLOW_P99):
        if entry.name not in names:
            continue
        bound = bounds[entry.bound]
        if entry is LONG_SILENCE:
            judged = _silences(uses, round(bound * _NS), stalls)
        else:
            judged = _slow(uses, round(bound * 1e6))
        told.append(_answer(entry, dict(judged), pass_, unproven_because))
    if not told:
        return GroupAnswers(results=(), anomalies=ANOMALIES.empty_table())
    return GroupAnswers.of(told)


def unproven(
    manifest: Manifest,
    samples: pa.Table,
    pass_: ServicePass,
    results: Mapping[str, CheckResult],
) -> list[str]:
    """Return why operations may be missing, a reason each."""
    cut = samples.filter(pc.equal(samples["metric"], CUT_SEGMENTS))
    reasons = [*pass_.failures]
    reasons += [f"the recording of {client} is cut short" for client in cut["source"].to_pylist()]
    if manifest.end_ns is None:
        reasons.append("the recording did not come to its end")
    broken = (
        name
        for name in _RECORDED_WHOLE
        if name in results and results[name].validity is Validity.UNKNOWN
    )
    return [*reasons, *(f"it rests on {name}, which fails" for name in broken)]


def _answer(
    entry: CatalogueEntry,
    judged: Mapping[str, Found],
    pass_: ServicePass,
    unproven_because: Sequence[str],
) -> tuple[CheckResult, pa.Table]:
    findings = findings_table(
        [
            found_row(entry.name, one) | {"path": entry.name, "key": key, "seconds": 0.0}
            for key, one in judged.items()
        ]
    )
    files = FileAnswers(record_count=0, unreadable=(), seconds=0.0)
    result = result_of(entry, findings, files=files, broken=frozenset(), died="")
    result = replace(result, seconds=pass_.seconds)
    if unproven_because:
        lost = f"; what was found proves nothing: {result.reason}" if result.reason else ""
        reason = f"{'; '.join(unproven_because)}{lost}"
        result = replace(result, validity=Validity.UNKNOWN, reason=reason)
    return result, anomalies_found(entry.name, findings)


def _silences(
    uses: Mapping[str, UseSums], bound_ns: int, stalls: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, Found]]:
    for use, sums in uses.items():
        for key, mine in sums.silences.items():
            yield _named(use, key, uses), _of_key(use, key, mine, bound_ns, stalls)


def _named(use: str, key: str, uses: Mapping[str, UseSums]) -> str:
    """Return the key of an anomaly: with the use, where a run has several."""
    return key if len(uses) == 1 else f"{use} of {key}"


def _of_key(
    use: str, key: str, mine: SilencesOfKey, bound_ns: int, stalls: Sequence[tuple[int, int]]
) -> Found:
    spans = zip(mine.begins_ns, mine.ends_ns, strict=True)
    count = sum(_unstalled_ns(begin, end, stalls) > bound_ns for begin, end in spans)
    kept = [one for one in mine.kept if _unstalled_ns(one.begin_ns, one.end_ns, stalls) > bound_ns]
    told = found(
        LONG_SILENCE.name,
        key,
        cases=mine.stretch_count,
        never=np.arange(len(kept), dtype=np.int64),
        proof=lambda number: _silence(use, kept[number], bound_ns, stalls),
    )
    return replace(told, never_count=count)


def _unstalled_ns(begin_ns: int, end_ns: int, stalls: Sequence[tuple[int, int]]) -> int:
    """Return the length of a silence less the time in which all processes stood still."""
    stood = sum(max(0, min(end_ns, until) - max(begin_ns, since)) for since, until in stalls)
    return end_ns - begin_ns - stood


def _silence(use: str, one: KeySilence, bound_ns: int, stalls: Sequence[tuple[int, int]]) -> Proof:
    length_ns = _unstalled_ns(one.begin_ns, one.end_ns, stalls)
    since = (
        "its last acknowledgement before is of operation {before}"
        if (one.before is not None)
        else "nothing had been acknowledged before"
    )
    until = (
        "the next one is of operation {after}"
        if one.after is not None
        else ("none followed before all who waited had failed")
    )
    return Proof.of(
        "for {length}, from {begin} to {end}, nothing was acknowledged while {count} {use} waited "
        f"(operations {{waiting}}); {since}, {until}; the scenario allows {{bound}}",
        operations={"before": one.before, "waiting": one.waiting, "after": one.after},
        times={"begin": one.begin_ns, "end": one.end_ns},
        durations={"length": length_ns, "bound": bound_ns},
        count=one.waiting_count,
        use=use,
    )


def _slow(uses: Mapping[str, UseSums], bound_ns: int) -> Iterator[tuple[str, Found]]:
    for use, sums in uses.items():
        outside = sums.latencies.outside.latency()
        if outside is not None:
            is_slow = 100 * sums.latencies.slow_count > outside.count
            never = np.zeros(int(is_slow), dtype=np.int64)
            proof = _slowest(use, sums, outside.count, bound_ns)
            yield (
                use,
                found(
                    SLOW_P99.name,
                    use,
                    cases=outside.count,
                    never=never,
                    proof=partial(_given, proof),
                ),
            )


def _given(proof: Proof, _: int) -> Proof:
    return proof


def _slowest(use: str, sums: UseSums, count: int, bound_ns: int) -> Proof:
    slowest = sums.latencies.slowest
    return Proof.of(
        "{slow_count} of {count} {use} outside faults, more than one in a hundred, took longer "
        "than {bound}; the slowest, up to {longest}, are operations {slowest}",
        operations={"slowest": [index for _, index, _ in slowest]},
        durations={"bound": bound_ns, "longest": slowest[0][0]},
        slow_count=sums.latencies.slow_count,
        count=count,
        use=use,
    )


CHECKS: Final = (LONG_SILENCE, SLOW_P99)
