"""A decision in words: the lines of a terminal, an alert, a CI's summary and its annotations."""

from collections.abc import Iterator
from typing import Final

from fencepost.harness.gate.called import CalledFinding, Doubt, FindingCall, Trend
from fencepost.harness.gate.decision import GateDecision, GatedFinding
from fencepost.harness.gate.known_issues import entry_for
from fencepost.report.notation import counted

ALERT_LINES_MAX: Final = 10
_ANNOTATIONS_MAX: Final = 10
"""GitHub shows ten of a kind a step."""
_SUMMARY_BYTES_MAX: Final = 1 << 20
"""GitHub refuses a longer summary of a step, whole."""
_OUTCOMES: Final = {
    0: "passes",
    1: "does not pass",
    2: "is not enough to pass",
    255: "is not enough to pass: runs failed",
}


def headline(decision: GateDecision) -> str:
    """Return the outcome in one line."""
    counts = dict.fromkeys(FindingCall, 0)
    for one in decision.judgements:
        counts[one.found.call] += 1
    told = ", ".join(f"{count} {call}" for call, count in counts.items() if count)
    suspended = sum(bool(one.suspended) and not one.gates for one in decision.judgements)
    runs = len(decision.night.runs)
    unsure = sum(one.count for one in decision.doubts)
    parts = (
        f"{runs} runs",
        told or "no finding",
        f"{suspended} suspended" if suspended else "",
        f"{unsure} without an answer" if unsure else "",
    )
    outcome = _OUTCOMES[decision.exit_code]
    return f"{decision.night.label} {outcome}: {', '.join(filter(None, parts))}"


def called_words(found: CalledFinding) -> str:
    """Return what a finding is called, with its numbers."""
    hits, runs = found.tonight.hits, found.tonight.runs
    tonight, before = f"{hits} of {runs} runs", f"{found.before.hits} of {found.before.runs}"
    match found.call:
        case FindingCall.NEW:
            hidden = found.hidden_rate_max
            if hidden is None:
                return f"new: {tonight}; no run of it before"
            return f"new: {tonight}, before {before} (a rate up to {hidden:.0%} may have hidden)"
        case FindingCall.ONGOING:
            trend = {
                Trend.UP: f", up (p = {found.p_value:.1g})",
                Trend.DOWN: f", down (p = {found.p_value:.1g})",
                Trend.STEADY: "",
            }[found.trend]
            return f"ongoing{trend}: {tonight}, before {before}"
        case FindingCall.RESOLVED:
            return f"resolved: not in the last {found.unseen_runs} runs, before {before}"
        case FindingCall.NOT_SEEN:
            return (
                f"not seen: {tonight}, before {before}; "
                f"{found.missing_runs} more runs without it are missing until it is resolved"
            )


def lines(decision: GateDecision) -> Iterator[str]:
    """Yield what a terminal shows."""
    yield headline(decision)
    for one in decision.judgements:
        yield f"  {_mark(one)} {one.found.identity} ({one.found.subject.words})"
        yield f"        {called_words(one.found)}{standing(one)}"
    yield from (f"  doubt {_doubt(one)}" for one in decision.doubts)
    yield from (f"  short {reason}" for reason in decision.lacking)
    yield from (f"  note  {warning}" for warning in decision.warnings)
    if decision.new:
        yield "to suspend what is new until a date, put into the file of --known, under 'known:':"
        for finding in dict.fromkeys(one.found.identity for one in decision.new):
            yield from entry_for(finding).splitlines()


def alert(decision: GateDecision) -> str:
    """Return at most ten lines for a pager or a chat: the outcome, and what gates, new first."""
    told = [headline(decision)]
    told += (f"{one.found.identity}: {called_words(one.found)}" for one in decision.gating)
    told += (_doubt(one) for one in decision.doubts)
    told += decision.lacking
    if len(told) > ALERT_LINES_MAX:
        rest = len(told) - ALERT_LINES_MAX + 1
        told = [*told[: ALERT_LINES_MAX - 1], f"and {rest} more"]
    return "\n".join(_plain(line) for line in told)


def annotations(decision: GateDecision) -> Iterator[str]:
    """Yield GitHub's commands that annotate a job, of what is new alone."""
    for one in decision.new[:_ANNOTATIONS_MAX]:
        message = f"{one.found.identity}: {called_words(one.found)}"
        yield f"::error title={_property('new finding')}::{_escaped(message)}"


def markdown(decision: GateDecision) -> str:
    """Return the summary of a CI's page, at most a MiB."""
    told = [f"## {_cell(headline(decision))}", ""]
    if decision.judgements:
        told += ["| | finding | on | called |", "|---|---|---|---|"]
        told += (
            f"| {_mark(one)} | `{_cell(one.found.identity)}` | {_cell(one.found.subject.words)} "
            f"| {_cell(called_words(one.found) + standing(one))} |"
            for one in decision.judgements
        )
    rest = (
        *(_doubt(one) for one in decision.doubts),
        *decision.lacking,
        *decision.warnings,
    )
    told += ["", *(f"- {_cell(line)}" for line in rest)]
    newest = f", the newest of them {decision.against[0]}" if decision.against else ""
    told += ["", f"Held against {counted(len(decision.against), 'night')} before{newest}.", ""]
    text = "\n".join(told)
    cut = text.encode()[: _SUMMARY_BYTES_MAX - 100].decode(errors="ignore")
    return text if cut == text else f"{cut.rpartition(chr(10))[0]}\n\n(cut: too long)\n"


def _mark(one: GatedFinding) -> str:
    if one.gates:
        return "gates"
    return "known" if one.suspended and one.found.tonight.hits else "     "


def standing(one: GatedFinding) -> str:
    """Return what suspends a finding, or what no longer does; begins with a semicolon, or empty."""
    if one.suspended:
        return f"; suspended by {one.suspended}"
    return f"; no longer suspended by {one.lapsed}" if one.lapsed else ""


def _doubt(one: Doubt) -> str:
    kind = "failed" if one.verdict == "failed" else "are unknown"
    return f"{one.count} of {one.runs} runs of {one.subject.words} {kind}: {one.reason}"


def _plain(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|").replace("<", "&lt;").replace("`", "'")


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")
