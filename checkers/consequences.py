"""What follows from a proven anomaly is told as its consequence, not as a doubt of its own.

A broker that an anomaly put out keeps the cluster from being whole, and that is a shortfall of the
run: as-planned is unknown. Where every shortfall is of that kind, as-planned says which anomaly it
follows from. A shortfall is of that kind if nothing was lacking but brokers that ran and took no
part, and their replicas, and if each of them was out at that moment by the proof of an anomaly.

This decides nothing: the answer remains unknown, and the run is invalid by the anomaly itself. An
anomaly that is known, or that is no longer found, explains nothing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from checkers.outages import Outage
from checkers.verdict import CheckResult, Validity
from history.manifest import Manifest, NotWhole


def with_consequences(
    planned: CheckResult, manifest: Manifest, outages: Iterable[Outage]
) -> CheckResult:
    """Return the answer of as-planned; `outages` are those that checks prove that are invalid."""
    if planned.validity is not Validity.UNKNOWN:
        return planned
    known = tuple(outages)
    causes = {one.shortfall: cause for one in manifest.not_whole if (cause := _cause(one, known))}
    told = "; ".join(manifest.shortfalls)
    if causes.keys().isdisjoint(manifest.shortfalls) or not planned.reason.startswith(told):
        return planned
    explained = "; ".join(
        f"{words} (follows from {causes[words].check}: {_said(causes[words])})"
        if words in causes
        else words
        for words in manifest.shortfalls
    )
    result = replace(planned, reason=explained + planned.reason.removeprefix(told))
    if planned.reason != told or not causes.keys() >= set(manifest.shortfalls):
        return result  # there is a doubt beside it
    return replace(result, follows_from=causes[manifest.shortfalls[0]].check)


def _cause(lacking: NotWhole, outages: Sequence[Outage]) -> Outage | None:
    """Return an outage that explains it; None if any of the brokers was out without one."""
    causes = [
        next((one for one in outages if one.holds(broker_id, lacking.time_ns)), None)
        for broker_id in lacking.broker_ids
    ]
    return causes[0] if causes and all(causes) else None


def _said(outage: Outage) -> str:
    return f"broker {outage.broker_id} was out from {outage.since_ns / 1e9:.3f} s on"
