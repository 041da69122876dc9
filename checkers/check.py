"""Checks a stored run: the history in, the verdict out, on Spark, without a cluster.

Two passes. The operations are summed up first: they say whether the history is what the checks take
it for, whether there are grounds, which final reads are complete and which polls crashed. Then one
pass over the records runs every check on every key. Afterwards groups of checks judge the tables of
the cluster itself.

A failure costs one answer its validity, and no other. A kernel that crashes is unknown for its key.
A task that dies (killed for its memory, say) ends the whole pass, so every check is then run in a
pass of its own, and those that die again are unknown. Without a manifest or a history, or on a full
disk, no check can be run: HarnessError.
"""

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fencepost.checkers.anomaly import ANOMALIES
from fencepost.checkers.case_counts import with_case_count
from fencepost.checkers.catalogue import GROUPS, KEY_CHECKS, TABLE_CHECKS, asked, entry_of
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.passes import RecordsPass, records_pass
from fencepost.checkers.data_plane.resent import CHECKS as OF_CLIENTS
from fencepost.checkers.data_plane.resent import with_culprits
from fencepost.checkers.entry import Kind
from fencepost.checkers.explained import explained
from fencepost.checkers.facts import facts_of
from fencepost.checkers.finding_rows import FINDINGS
from fencepost.checkers.findings import findings_of
from fencepost.checkers.grounds.assumptions import run_assumptions
from fencepost.checkers.grounds.decided_span import decided_span
from fencepost.checkers.grounds.grounds import course, fault_windows, run_grounds
from fencepost.checkers.grounds.history_summary import HistorySummary, history_summary
from fencepost.checkers.grounds.operation_kinds import operation_kinds
from fencepost.checkers.grounds.operations import (
    COLUMNS,
    SUMMARY,
    FaultWindow,
    summary_of_operations,
)
from fencepost.checkers.grounds.required import required
from fencepost.checkers.grounds.topics_alive import TABLES as OF_TOPICS
from fencepost.checkers.grounds.topics_alive import topics_alive
from fencepost.checkers.grounds.whole_run import NAME as WHOLE_RUN
from fencepost.checkers.grounds.whole_run import WholeRun, whole_run_of
from fencepost.checkers.grounds.whole_tape import NAME as WHOLE_TAPE
from fencepost.checkers.grounds.whole_tape import whole_tape_of
from fencepost.checkers.grounds.windows import window_strikes
from fencepost.checkers.group_pass import group_answers, table_group
from fencepost.checkers.losses.forensics import Forensics, write_forensics
from fencepost.checkers.losses.forensics_pass import loss_forensics
from fencepost.checkers.results import FileAnswers, anomalies_found, file_answers, result_of
from fencepost.checkers.runner.tables import (
    SealedFile,
    load_faults,
    load_samples,
    operation_files,
    operations_in,
    record_files,
    run_files,
)
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.service.bounds import bounds_kept, unproven
from fencepost.checkers.service.level import service_level, service_pass
from fencepost.checkers.setting import Setting
from fencepost.checkers.slices import SLICE_ROWS
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.verdict import CheckResult, Validity, Verdict, write_verdict
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, read_manifest
from fencepost.history.run_directory import RunDirectory

BUDGET_S: Final = 3600.0
"""The budget of one pass of a few hundred tasks; a pass that outlasts it is halved, and a task that
does alone has failed: its check is unknown."""
_GIVEN: Final = {check.entry.name: check.given for check in TABLE_CHECKS} | {
    entry.name: (*group.given, *(name for one in group.entries for name in one.needs))
    for group in GROUPS
    for entry in group.entries
}
"""The tables that a check is given, those included that it can do without; of a group, its all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Summed:
    """The pass over the operations."""

    summary: HistorySummary | None
    """None if it failed, or some file could not be read."""
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """The answers of the passes over the operations and the records."""

    results: tuple[CheckResult, ...]
    setting: Setting
    findings: pa.Table
    """FINDINGS of the records."""
    summary: HistorySummary | None = None


def check_run(
    run: RunDirectory,
    *,
    session: TaskSession,
    checks: Mapping[str, KeyCheck] = KEY_CHECKS,
    tables: Sequence[TableCheck] = TABLE_CHECKS,
    groups: Sequence[CheckGroup] = GROUPS,
    budget_s: float = BUDGET_S,
    slice_rows: int = SLICE_ROWS,
) -> Verdict:
    """Judge a sealed run; write `verdict.json` and `anomalies/<check>.parquet`; the verdict.

    Where records were lost and the run recorded its replicas, `forensics.json` tells how.

    Raises HarnessError if the manifest, the faults or all operations are missing or not readable,
    or if the disk refuses the verdict. Files of records that are missing or damaged make unknown.
    """
    manifest = read_manifest(run.manifest_path)
    faults, samples = load_faults(run), load_samples(run)
    answered = _nothing_asked()
    if "records" in manifest.tables:
        answered = _of_clients(run, manifest, session=session, checks=checks, budget_s=budget_s)
    names = tuple(entry.name for entry in asked(manifest.tables, bounds=manifest.required_bounds))
    question = Question(
        run=run,
        manifest=manifest,
        checks=names,
        setting=answered.setting,
        session=session,
        budget_s=budget_s,
        slice_rows=slice_rows,
    )
    whole = whole_run_of(run, manifest, answered.summary, session=session, budget_s=budget_s)
    of_groups = group_answers((table_group(tables), *groups), question)
    results = {
        result.check: result
        for result in (
            course(manifest, samples, faults),
            whole.result,
            *_of_recordings(run, manifest),
            *answered.results,
            *(result for group in of_groups for result in group.results),
        )
    }
    served = service_pass(run, manifest, faults, session=session, budget_s=budget_s)
    reasons = unproven(manifest, samples, served, results)
    bounded = bounds_kept(names, manifest, faults, served, unproven_because=reasons)
    results |= {result.check: result for result in bounded.results}
    weighed_results = _weighed(_grounded(results, whole, manifest), manifest)
    told = (weighed_results.get(name, _not_run(name)) for name in names)
    verdict = Verdict.of(told, run_id=manifest.run_id)
    anomalies = _anomalies(verdict, answered.findings, (*of_groups, bounded))
    verdict = explained(verdict, manifest, anomalies)
    forensics = loss_forensics(question, verdict, anomalies)
    verdict = replace(
        verdict,
        findings=findings_of(verdict, manifest, anomalies, forensics),
        service_level=service_level(manifest, faults, served, weighed_results),
    )
    _write(run, manifest, verdict, anomalies, forensics)
    return verdict


def _of_recordings(run: RunDirectory, manifest: Manifest) -> Iterator[CheckResult]:
    """Yield the answers about what was recorded of the cluster."""
    if "windows" in manifest.recorded:
        yield window_strikes(run, manifest)
    if "metadata_log" in manifest.tables:
        yield decided_span(run, manifest, entry_of)
    if "wire" in manifest.tables:
        yield whole_tape_of(run, manifest)
    if manifest.tables >= OF_TOPICS:
        yield topics_alive(run, manifest)


def _grounded(
    results: Mapping[str, CheckResult], whole: WholeRun, manifest: Manifest
) -> Mapping[str, CheckResult]:
    """Return the answers, those unknown whose evidence is not whole."""
    if WHOLE_TAPE in results and results[WHOLE_TAPE].validity is not Validity.VALID:
        zookeeper = facts_of(manifest).on_zookeeper
        results = {
            name: _without_tape(result, on_zookeeper=zookeeper) for name, result in results.items()
        }
    return {name: _without(whole, result) for name, result in results.items()}


def _weighed(results: Mapping[str, CheckResult], manifest: Manifest) -> Mapping[str, CheckResult]:
    """Return the answers as they count for this run, and whether all that it demands is there."""
    found = {name: with_case_count(one, manifest.promises) for name, one in results.items()}
    demanded = required(manifest, found, entry_of)
    return {**found, demanded.check: with_case_count(demanded, manifest.promises)}


def _without_tape(result: CheckResult, *, on_zookeeper: bool) -> CheckResult:
    """Return the answer where the tape is not whole: unknown, if it rests on that."""
    entry = entry_of(result.check)
    resting = (*entry.rests_on, *(entry.rests_on_zookeeper if on_zookeeper else ()))
    if WHOLE_TAPE not in resting:
        return result
    return _resting(result, f"it rests on {WHOLE_TAPE}, which fails")


def _without(whole: WholeRun, result: CheckResult) -> CheckResult:
    """Return the answer where tables do not fit each other: unknown, if it was given one."""
    entry = entry_of(result.check)
    given = whole.tables & {*entry.needs, *_GIVEN.get(result.check, ())}
    told = result.validity is Validity.UNKNOWN
    if entry.kind is not Kind.ANOMALY or not given or told:
        return result
    return _resting(result, f"{WHOLE_RUN} fails of {', '.join(sorted(given))}")


def _resting(result: CheckResult, reason: str) -> CheckResult:
    invalid = result.validity is Validity.INVALID
    useless = f"; what was found proves nothing: {result.reason}" if invalid else ""
    return replace(result, validity=Validity.UNKNOWN, reason=f"{reason}{useless}")


def _of_clients(
    run: RunDirectory,
    manifest: Manifest,
    *,
    session: TaskSession,
    checks: Mapping[str, KeyCheck],
    budget_s: float,
) -> _Answered:
    faults = load_faults(run)
    summed = _summed(run, manifest, faults, session=session, budget_s=budget_s)
    files = record_files(run, manifest)
    setting = _setting(manifest, summed.summary)
    found = records_pass(session, files, setting=setting, checks=checks, budget_s=budget_s)
    findings = with_culprits(
        found.findings, run=run, manifest=manifest, session=session, budget_s=budget_s
    )
    found = replace(found, findings=findings)
    answers = file_answers(found.findings, paths=(file.path for file in files))
    return _Answered(
        results=(
            *_grounds(manifest, summed, faults, found=found, answers=answers),
            operation_kinds(run, manifest, faults),
            *_answers(summed, found, answers, checks),
        ),
        setting=setting,
        findings=found.findings,
        summary=summed.summary,
    )


def _nothing_asked() -> _Answered:
    """Return the empty answers for an open history: it has no clients of Kafka."""
    return _Answered(results=(), setting=Setting(), findings=FINDINGS.empty_table())


def _summed(
    run: RunDirectory,
    manifest: Manifest,
    faults: pa.Table,
    *,
    session: TaskSession,
    budget_s: float,
) -> _Summed:
    started = perf_counter()
    work = partial(_summary_of, windows=fault_windows(faults))
    answers = run_files(session, operation_files(run, manifest), work, budget_s=budget_s)
    reason = "; ".join(answer.failure for answer in answers if answer.failure)
    rows = [answer.content for answer in answers if answer.content is not None]
    summary = None if reason else history_summary(pa.concat_tables([SUMMARY.empty_table(), *rows]))
    return _Summed(summary=summary, reason=reason, seconds=perf_counter() - started)


def _summary_of(file: SealedFile, *, windows: Sequence[FaultWindow]) -> pa.Table:
    """Return SUMMARY of a file of `operations`, which the recorder bounds: a task holds one."""
    return summary_of_operations(file.path, operations_in(file, COLUMNS), windows=windows)


def _setting(manifest: Manifest, summary: HistorySummary | None) -> Setting:
    promises = manifest.promises
    setting = Setting(
        idempotent=promises.idempotent, consume=promises.consume, readers=promises.readers
    )
    if summary is None:
        return setting
    return replace(setting, final_reads=summary.final_reads, info_polls=summary.info_polls)


def _grounds(
    manifest: Manifest,
    summed: _Summed,
    faults: pa.Table,
    *,
    found: RecordsPass,
    answers: FileAnswers,
) -> Iterator[CheckResult]:
    of_run = run_grounds(
        summed.summary, why_no_summary=summed.reason, faults=faults, manifest=manifest
    )
    for result in of_run:
        if result.check != "statistics":
            yield result
            continue
        spent = {
            "operations_pass_seconds": summed.seconds,
            "records_pass_seconds": found.seconds,
        }
        yield replace(result, figures={**result.figures, **spent}, seconds=answers.seconds)


def _answers(
    summed: _Summed, found: RecordsPass, answers: FileAnswers, checks: Mapping[str, KeyCheck]
) -> Iterator[CheckResult]:
    assumed = run_assumptions(
        summed.summary,
        why_no_summary=summed.reason,
        record_count=answers.record_count,
        unreadable=answers.unreadable,
    )
    yield from assumed.results
    entries = [check.entry for check in {**KEY_ASSUMPTIONS, **checks}.values()]
    for entry in (*entries, *OF_CLIENTS):
        yield result_of(
            entry,
            found.findings,
            files=answers,
            broken=assumed.broken,
            died=found.died.get(entry.name, ""),
        )


def _not_run(name: str) -> CheckResult:
    return CheckResult(check=name, validity=Validity.UNKNOWN, reason="it was not run")


def _anomalies(
    verdict: Verdict, findings: pa.Table, groups: Sequence[GroupAnswers]
) -> Mapping[str, pa.Table]:
    """Return ANOMALIES of each check that found any."""
    of_groups = pa.concat_tables([ANOMALIES.empty_table(), *(group.anomalies for group in groups)])
    return {
        result.check: pa.concat_tables(
            [
                anomalies_found(result.check, findings),
                of_groups.filter(pc.equal(of_groups["check"], result.check)),
            ]
        )
        for result in verdict.checks
        if result.anomaly_count
    }


def _write(
    run: RunDirectory,
    manifest: Manifest,
    verdict: Verdict,
    anomalies: Mapping[str, pa.Table],
    forensics: Forensics | None,
) -> None:
    """Write the anomalies first and the verdict last: a stored verdict always has its anomalies."""
    building = run.root / ".anomalies.building"
    try:
        run.verdict_path.unlink(missing_ok=True)
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir()
        for check, table in anomalies.items():
            pq.write_table(table, building / f"{check}.parquet", compression="zstd")
        shutil.rmtree(run.anomalies, ignore_errors=True)
        run.forensics_path.unlink(missing_ok=True)
        os.replace(building, run.anomalies)  # noqa: PTH105 - Path.replace hides that it is atomic
    except OSError as error:
        raise HarnessError(f"cannot write the anomalies of {run.root}: {error}") from error
    if forensics is not None:
        write_forensics(run.forensics_path, forensics)
    about = {"waived": manifest.waived, "tested": manifest.tested, "jars": manifest.jars}
    write_verdict(run.verdict_path, verdict, about=about)
