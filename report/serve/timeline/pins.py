"""Moments that are worth a look: findings, the steps of the story of a loss, those of the play."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow.dataset as ds

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import FactKind
from fencepost.checkers.verdict import Verdict, read_verdict
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.report.anomalies import groups_in
from fencepost.report.faults import FaultSpan
from fencepost.report.forensics import stories_at
from fencepost.report.notation import integer
from fencepost.report.performed import PerformedStep, performed_steps
from fencepost.report.reading import Attempts

_PINS_MAX: Final = 400
_PLAY_BYTES_MAX: Final = 200_000
"""A longer play is that of a random mix, whose steps are the faults; it takes seconds to parse."""
_SOURCES: Final = {
    FactKind.OPERATION: (
        ("operations", "index", "call_ns"),
        ("znode_operations", "index", "call_ns"),
    ),
    FactKind.FRAME: (("wire", "frame", "time_ns"),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """A moment: `kind` is finding, story or step."""

    kind: str
    time_ns: int
    text: str
    row: int | None = None
    """The frame that it is about, if it is one."""


def pins_of(
    run: RunDirectory, spans: tuple[FaultSpan, ...]
) -> tuple[tuple[Pin, ...], tuple[str, ...]]:
    """Return the pins in the order of time, and a sentence for all that could not be read."""
    attempts = Attempts()
    pins: list[Pin] = []
    if run.verdict_path.exists():
        pins += attempts.read(lambda: list(_findings(run, read_verdict(run.verdict_path))), [])
    pins += attempts.read(lambda: list(_story(run)), [])
    remarks = list(attempts.troubles)
    if run.play_path.is_file() and run.play_path.stat().st_size > _PLAY_BYTES_MAX:
        remarks.append(
            "The play is long, and its steps are left out; the faults show what they did."
        )
    else:
        steps: tuple[PerformedStep, ...] = ()
        steps = attempts.read(lambda: performed_steps(run.play_path, spans), steps)
        pins += [Pin(kind="step", time_ns=one.time_ns, text=one.text) for one in steps]
    pins.sort(key=lambda pin: (pin.kind == "step", pin.time_ns))
    if len(pins) > _PINS_MAX:
        remarks.append(f"Of {len(pins)} pins, the first {_PINS_MAX} are shown.")
    kept = sorted(pins[:_PINS_MAX], key=lambda pin: pin.time_ns)
    return tuple(kept), tuple(remarks)


def _findings(run: RunDirectory, verdict: Verdict) -> Iterator[Pin]:
    """Yield a pin for each check that found something: where its smallest anomaly begins."""
    titles = {finding.check: finding.title for finding in verdict.findings or ()}
    for group in groups_in(run.anomalies):
        proven = ((one, _moment(run, one)) for one in group.smallest if not one.allowed)
        found = next(((one, at) for one, at in proven if at is not None), None)
        if found is not None:
            anomaly, (time_ns, frame) = found
            about = f" of {anomaly.key}" if anomaly.key else ""
            count = f" ({integer(group.illegal_count)})" if group.illegal_count > 1 else ""
            text = f"{group.check}{about}{count}: {titles.get(group.check) or anomaly.detail}"
            yield Pin(kind="finding", time_ns=time_ns, text=text, row=frame)


def _moment(run: RunDirectory, anomaly: Anomaly) -> tuple[int, int | None] | None:
    """Return the time of what the anomaly rests on, and the frame if it is one."""
    facts = anomaly.proof.facts
    frames = [int(fact.value) for fact in facts if fact.kind is FactKind.FRAME]
    if frames and (found := _time(run, FactKind.FRAME, frames[0])) is not None:
        return found, frames[0]
    for index in anomaly.operations[:1]:
        if (found := _time(run, FactKind.OPERATION, index)) is not None:
            return found, None
    times = [int(fact.value) for fact in facts if fact.kind is FactKind.TIME]
    return (times[0], None) if times else None


def _time(run: RunDirectory, kind: FactKind, number: int) -> int | None:
    for table, column, time in _SOURCES[kind]:
        path = run.table_path(table)
        if path.exists():
            rows = ds.dataset(path).head(1, columns=[time], filter=ds.field(column) == number)
            if len(rows):
                return int(rows[time][0].as_py())
    return None


def _story(run: RunDirectory) -> Iterator[Pin]:
    try:
        stories = stories_at(run.forensics_path).stories
    except FileNotFoundError:
        return
    except OSError as error:
        raise HarnessError(f"cannot read {run.forensics_path}: {error}") from error
    for story in stories:
        for moment in story.moments:
            if moment.time_ns is not None and moment.decisive:
                frame = moment.frames[0] if moment.frames else None
                yield Pin(kind="story", time_ns=moment.time_ns, text=moment.what, row=frame)
