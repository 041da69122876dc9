"""The work of a run's random faults as a report tells it: how many a minute, and how long none."""

from typing import Final

from fencepost.history.manifest import NemesisWork
from fencepost.report.notation import length, moment, one_line

_NS: Final = 1_000_000_000


def work_line(work: NemesisWork) -> str:
    """Return the faults a minute, the longest idle time, and all that was waited for."""
    words = f"{work.faults_a_minute:.1f} faults a minute; {idle_words(work)}"
    if work.idle_for:
        words += f" (from {moment(round(work.idle_at_s * _NS))} on: {one_line(work.idle_for)})"
    if work.waits_s:
        waits = (f"{length(s * _NS)} for {kind}" for kind, s in sorted(work.waits_s.items()))
        words += f"; waited in all {', '.join(waits)}"
    return words


def idle_words(work: NemesisWork) -> str:
    """Return for how long nothing was broken, at most."""
    return f"nothing broken, though due, for {length(work.idle_s * _NS)} at most"
