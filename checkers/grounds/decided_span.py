"""G12 decided-span: What the cluster decided is known from the start.

The metadata log of record does not begin with a snapshot, or the scenario demands no check that
reads it (`require: {judged: […]}`). The time until which decisions are known in sum alone is told.

A log that begins with a snapshot tells what was there then, and not how it came about: a check of
decisions judges the time behind it, and may find cases enough there to look like a check of the
whole run. So the span that is known in sum alone is told, and a run whose scenario demands a check
that reads the log is unknown if there is one.

Meaning: A long run was judged on its end, and looks as if it was judged whole.
Case: a metadata log
Source: KIP-630
"""

from collections.abc import Callable
from typing import Final

import numpy as np

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.facts import Facts, facts_of
from fencepost.checkers.metadata.log_of_record import LogOfRecord, log_of_record
from fencepost.checkers.runner.tables import cluster_file, source_in
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.GROUND,
    needs=("metadata_log",),
)
_NAME: Final = ENTRY.name
_LOG: Final = "metadata_log"
_UNTIL: Final = "known_in_sum_until_s"


def decided_span(
    run: RunDirectory, manifest: Manifest, entry_of: Callable[[str], CatalogueEntry]
) -> CheckResult:
    """Check that what was decided is known from the start of the run, if a demand rests on it.

    `entry_of`: the entry of a check, by name.
    """
    facts = facts_of(manifest)
    try:
        log = log_of_record(source_in(cluster_file(run, manifest, _LOG), _LOG), facts)
    except HarnessError as error:
        return CheckResult(check=_NAME, validity=Validity.UNKNOWN, reason=str(error))
    until_s = _until_s(log, facts)
    demanded = [one for one in manifest.required_checks if _LOG in entry_of(one).needs]
    lacking = f"what was decided before {until_s:.1f} s is known in sum alone (a snapshot)"
    reason = f"{lacking}, and {', '.join(demanded)} is demanded" if until_s and demanded else ""
    return CheckResult(
        check=_NAME,
        validity=Validity.UNKNOWN if reason else Validity.VALID,
        case_count=1,
        reason=reason,
        figures={_UNTIL: until_s},
    )


def known_in_sum_until_s(verdict: Verdict) -> float:
    """Return until when a run knows its decisions in sum alone; 0: it knows all of them."""
    told = (one.figures for one in verdict.checks if one.check == _NAME)
    return next((figures.get(_UNTIL, 0.0) for figures in told), 0.0)


def _until_s(log: LogOfRecord, facts: Facts) -> float:
    """Return when the first record behind the snapshot was appended, or the log's end."""
    if log.doubt or not log.begins_with_snapshot:
        return 0.0
    behind = np.flatnonzero(~log.rows["snapshot"].to_numpy())
    stamps = log.rows["timestamp_ms"].to_numpy()
    first_ms = int(stamps[behind[0]]) if len(behind) else log.end_timestamp_ms
    return max(0.0, facts.latest_ns(first_ms) / 1e9)


CHECKS: Final = (ENTRY,)
