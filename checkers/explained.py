"""The answers of a verdict, where an anomaly explains one: known by name, or its consequence.

Both rest on the proofs of anomalies, so they are told when all checks have answered. Neither takes
an invalid or an unknown answer away: what is known is so by the scenario's own word and no wider
than `checkers.known_findings`, and a consequence remains unknown beside the invalid that it follows
from. An anomaly that is only known explains no shortfall.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa

from checkers.anomaly import ANOMALIES, Anomaly, anomalies_of
from checkers.catalogue import entry_of
from checkers.consequences import with_consequences
from checkers.known_findings import with_known
from checkers.outages import outages_of
from checkers.verdict import CheckResult, Validity, Verdict
from history.manifest import Manifest

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
            with_consequences(check, manifest, outages) if check.check == _PLANNED else check
            for check in told
        ),
        run_id=verdict.run_id,
    )
