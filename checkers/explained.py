"""The answers of a verdict, where an anomaly explains one: known by name, or its consequence.

Both rest on the proofs of anomalies, so they are told when all checks have answered. Neither takes
an invalid or an unknown answer away: what is known is so by the scenario's own word and no wider
than `checkers.known_findings`, and a consequence remains unknown beside the invalid that it follows
from.

A broker that a proven anomaly put out keeps the cluster from being whole, and that is a shortfall
of the run: as-planned is unknown. Where every shortfall is of that kind, as-planned says which
anomaly it follows from. A shortfall is of that kind if nothing was lacking but brokers that ran
and took no part, and their replicas, and if each of them was out at that moment by the proof of
an anomaly. One that is only known, or that is no longer found, explains nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from fencepost.checkers.anomaly import ANOMALIES, Anomaly, anomalies_of
from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.known_findings import with_known
from fencepost.checkers.outages import Outage, outages_of
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.manifest import Manifest, NotWhole

_PLANNED = "as-planned"


def explained(verdict: Verdict, manifest: Manifest, anomalies: Mapping[str, pa.Table]) -> Verdict:
    """Return the verdict with what is known, and with what follows from what is proven.

    `anomalies`: ANOMALIES by check.
    """

    def spelled(check: CheckResult) -> Iterator[Anomaly]:
        return anomalies_of(anomalies.get(check.check, ANOMALIES.empty_table()))

    told = [with_known(check, spelled(check), manifest.known) for check in verdict.checks]
    outages = [
        outage
        for check in told
        if check.validity is Validity.INVALID and entry_of(check.check).tells_outages
        for outage in outages_of(spelled(check))
    ]
    return Verdict.of(
        (
            _with_consequences(check, manifest, outages) if check.check == _PLANNED else check
            for check in told
        ),
        run_id=verdict.run_id,
    )


def _with_consequences(
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
