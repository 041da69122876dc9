"""The body of `fencepost gate`."""

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from functools import cache
from pathlib import Path
from typing import Final

import click

from fencepost.harness.cli.options import emit_json
from fencepost.harness.gate.decision import GateDecision, day_of, decided
from fencepost.harness.gate.known_issues import KnownIssue, read_known_issues
from fencepost.harness.gate.nights import (
    NIGHTS_MAX,
    NightRecord,
    nights_before,
    read_night,
    stored_night,
)
from fencepost.harness.gate.reports import as_json_data, ctrf, junit
from fencepost.harness.gate.words import alert, annotations, headline, lines, markdown
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError, UsageError

_PREVIEW_MAX: Final = 30


def gate(
    *,
    nights: tuple[str, ...],
    against: str | None,
    known: Path | None,
    list_known: bool,
    preview: bool,
    summary: Path | None,
    junit: Path | None,
    ctrf: Path | None,
    annotations: bool,
    alert: bool,
    results: Path,
    as_json: bool,
) -> int:
    """Say whether a night passes; return the exit code."""
    issues = () if known is None else read_known_issues(known)
    if list_known:
        return _list(issues, as_json=as_json)
    if preview:
        return _preview(nights, issues, results=results, against=against, as_json=as_json)
    if len(nights) > 1:
        raise UsageError(f"{len(nights)} nights: give one, or --preview to see each of several")
    path = stored_night(results, nights[0] if nights else None)
    decision = _decision(
        path,
        issues,
        results=results,
        against=against,
        today=date.today(),  # noqa: DTZ011 - the user's own calendar
    )
    _write(decision, summary=summary, junit_path=junit, ctrf_path=ctrf)
    if as_json:
        emit_json(as_json_data(decision))
    else:
        click.echo("\n".join(_shown(decision, annotated=annotations, brief=alert)))
    return decision.exit_code


def _decision(
    path: Path,
    issues: Sequence[KnownIssue],
    *,
    results: Path,
    against: str | None,
    today: date | None,
    read: Callable[[Path], NightRecord] = read_night,
) -> GateDecision:
    night = read(path)
    return decided(
        night,
        list(_before(night, results=results, against=against, read=read)),
        issues,
        today=day_of(night) if today is None else today,
    )


def _before(
    night: NightRecord, *, results: Path, against: str | None, read: Callable[[Path], NightRecord]
) -> Iterator[NightRecord]:
    """Yield what the night is held against, oldest first."""
    if against is not None:
        yield read(stored_night(results, against))
        return
    for path in reversed(nights_before(night, at_most=NIGHTS_MAX)):
        yield read(path)


def _shown(decision: GateDecision, *, annotated: bool, brief: bool) -> Iterator[str]:
    if annotated:
        yield from annotations(decision)
    if brief:
        yield alert(decision)
    elif not annotated:
        yield from lines(decision)


def _write(
    decision: GateDecision, *, summary: Path | None, junit_path: Path | None, ctrf_path: Path | None
) -> None:
    if summary is not None:
        try:
            with summary.open("a", encoding="utf-8") as file:
                file.write(markdown(decision))
        except OSError as error:
            raise HarnessError(f"cannot write {summary}: {error.strerror}") from error
    if junit_path is not None:
        write_atomically(junit_path, junit(decision))
    if ctrf_path is not None:
        write_atomically(ctrf_path, ctrf(decision))


def _list(issues: Sequence[KnownIssue], *, as_json: bool) -> int:
    today = date.today()  # noqa: DTZ011 - the user's own calendar
    told = [
        {
            "finding": one.finding,
            "issue": one.issue,
            "until": one.until_text,
            "reason": one.reason,
            "lapsed": one.lapsed(today),
            "place": one.place,
        }
        for one in issues
    ]
    if as_json:
        emit_json(told)
        return 0
    for one in told:
        state = f"lapsed: {one['lapsed']}" if one["lapsed"] else f"until {one['until']}"
        click.echo(f"{one['place']}: {one['finding']} ({one['issue']}, {state}): {one['reason']}")
    return 0


def _preview(
    nights: Sequence[str],
    issues: Sequence[KnownIssue],
    *,
    results: Path,
    against: str | None,
    as_json: bool,
) -> int:
    """Say what each night would have been called, as of its own day."""
    paths = [stored_night(results, name) for name in nights]
    if not paths:
        newest = read_night(stored_night(results, None))
        paths = [*reversed(nights_before(newest, at_most=_PREVIEW_MAX - 1)), newest.path]
    read = cache(read_night)  # each night is held against all before it
    told = [
        _decision(path, issues, results=results, against=against, today=None, read=read)
        for path in paths
    ]
    if as_json:
        emit_json([as_json_data(one) for one in told])
        return 0
    for one in told:
        click.echo(f"exit code {one.exit_code}: {headline(one)}")
        for judged in one.gating:
            click.echo(f"  {judged.found.call}: {judged.found.identity}")
    return 0
