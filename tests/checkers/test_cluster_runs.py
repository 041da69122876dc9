"""Stored runs with tables of their cluster, through Spark."""

import os
import signal
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from histories import history
from manifests import MANIFEST
from metadata_logs import FACTS, describes, metadata_log, wire
from replica_disks import disks

from fencepost.checkers.catalogue import CATALOGUE, TABLE_CHECKS, entry_of
from fencepost.checkers.check import check_run
from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.control_plane.illegal_isr import CHECKS, EMPTY, NOT_IN_REPLICAS
from fencepost.checkers.facts import Facts, Judged, Tables
from fencepost.checkers.losses.forensics import ValueFate, read_forensics
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.table_check import TableCheck, TableKernel
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.cluster_schema import NODE_SETTINGS
from fencepost.history.manifest import write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import note_digests
from fencepost.history.writer import write_tables

LOG = """
    1 register 1 at -9000
    2 unfence 1 at -9000
    5 topic t at -8000
    6 partition t-0 replicas 1,2 isr 1 leader 1 at -8000
    7 noop at -7000
    36 change t-0 isr 1,2 at 22000
    43 change t-0 isr 2 leader 2 at 22500
    44 noop at 22600
    90 noop at 30000
"""
TAPE = """
    at 19990 broker-2 register -> ok 33 at 20010
    at 9812 passed 21990 broker-1 alter t-0 expecting 0 isr 1,2 -> ok 1 at 22010
"""
REGISTERED = "33 register 2 at 20000\n34 unfence 2 at 20500\n"
SENT = """
    p1 send t-0 v17 -> ok @0
    p1 send t-0 v18 -> ok @1
    c1 poll -> t-0 [v17@0 v18@1]
    r1 final t-0 -> []
"""
RECORDED = ("wire", "metadata_log", "replicas", "replica_records")


def stored(
    path: Path,
    *,
    log: str = LOG.replace("    36", REGISTERED + "    36"),
    recorded: tuple[str, ...] = RECORDED,
    sent: str = SENT,
    lines: str = "broker-1: nothing hw 0\nbroker-2: nothing hw 0",
    tape: str = TAPE,
    **others: pa.Table,
) -> RunDirectory:
    run, past = RunDirectory(path / "run"), history(sent)
    write_tables(
        run,
        operations=past.operations,
        records=past.records,
        cluster={"metadata_log": metadata_log(log), "wire": wire(tape), **disks(lines), **others},
    )
    manifest = replace(
        MANIFEST, keys=("t-0",), node_ids=FACTS.node_ids, recorded=recorded, end_ns=30_000_000_000
    )
    write_manifest(run.manifest_path, manifest)
    note_digests(run)
    return run


def results(
    run: RunDirectory, tasks: TaskSession, tables: Iterable[TableCheck] = TABLE_CHECKS
) -> dict[str, CheckResult]:
    return {
        one.check: one
        for one in check_run(run, session=tasks, tables=tuple(tables), groups=()).checks
    }


SENT_TWICE = """
    p1 send t-0 v17 -> ok @2
    p1 send t-0 v18 -> ok @1
    c1 poll -> t-0 [v17@0 v18@1 v17@2]
    r1 final t-0 -> [v17@0 v18@1 v17@2]
"""


@pytest.mark.parametrize(
    ("epoch", "validity"), [(1, Validity.VALID), (0, Validity.INVALID)], ids=["client", "broker"]
)
def test_the_logs_say_whose_a_duplicate_is(
    tmp_path: Path, tasks: TaskSession, epoch: int, validity: Validity
) -> None:
    kept = f"17@0 by 7/0 18@1 by 7/0 17@2 by 7/{epoch} hw 3"
    run = stored(tmp_path, sent=SENT_TWICE, lines=f"broker-1: {kept}\nbroker-2: {kept}")
    assert results(run, tasks)["duplicate"].validity is validity


@pytest.mark.spark
def test_a_stale_join_is_found_with_its_truncation_and_the_story_of_the_loss(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = stored(tmp_path)
    found = results(run, tasks)
    wrong = {name for name, one in found.items() if one.validity is Validity.INVALID}
    assert {"stale-epoch-join", "truncated-below-high-watermark", "lost-write"} <= wrong
    assert "unsafe-leader-candidate" not in wrong
    assert found["stale-epoch-join"].examples[0].frames == (10, 11)
    assert found["nonlinearizable-isr"].validity is Validity.VALID
    forensics = read_forensics(run.forensics_path)
    assert forensics is not None
    assert not forensics.troubles
    (loss,) = forensics.losses
    assert (loss.fate, loss.count, loss.checks) == (ValueFate.LOST, 2, ("lost-write", "vanished"))
    assert loss.join is None  # no send after the election, so no disk tells of it


def test_what_was_not_recorded_is_not_asked(tmp_path: Path, tasks: TaskSession) -> None:
    run = stored(tmp_path, recorded=("metadata_log",))
    found = results(run, tasks)
    assert found["two-leaders"].validity is Validity.VALID
    assert not {"stale-epoch-join", "shared-identity", "divergent-replicas"} & set(found)
    assert not run.forensics_path.exists()


def test_an_empty_metadata_log_that_was_to_be_recorded_is_unknown(
    tmp_path: Path, tasks: TaskSession
) -> None:
    found = results(stored(tmp_path, log=""), tasks)
    for name in ("stale-epoch-join", "truncated-below-high-watermark", "metadata-divergence"):
        assert "0 of 1 controllers left a metadata log" in found[name].reason
        assert found[name].validity is Validity.UNKNOWN


def test_a_lost_tape_judges_nothing_and_leaves_the_run_unknown(
    tmp_path: Path, tasks: TaskSession
) -> None:
    recorded = (*RECORDED, "describes", "node_settings")
    taped = {
        entry.name for entry in CATALOGUE if "wire" in entry.needs and {*entry.needs} <= {*recorded}
    }
    kept = "17@0 18@1 hw 2"
    shown = pa.Table.from_pylist(
        [{"node": "controller-1", "name": "broker.session.timeout.ms", "value": "3000"}],
        schema=NODE_SETTINGS,
    )
    run = stored(
        tmp_path,
        recorded=recorded,
        lines=f"broker-1: {kept}\nbroker-2: {kept}",
        sent=SENT.replace("final t-0 -> []", "final t-0 -> [v17@0 v18@1]"),
        tape="",
        describes=describes("broker-1 showed t-0 leader 1 isr 1 at 100..110"),
        node_settings=shown,
    )
    verdict = check_run(run, session=tasks, groups=())
    found = {one.check: one for one in verdict.checks}
    assert verdict.validity is Validity.UNKNOWN
    assert found["whole-run"].validity is Validity.UNKNOWN
    assert found["whole-run"].reason == "the tape (wire) is empty"
    figures = {"served-while-fenced"}
    judged = {name: found[name] for name in taped - figures}
    assert {one.validity for one in judged.values()} == {Validity.NOT_JUDGED}, [
        (name, one.reason) for name, one in judged.items() if one.reason
    ]
    assert {found[name].validity for name in figures} == {Validity.FIGURE}
    assert not any(found[name].case_count for name in taped)


def test_a_tape_that_was_kept_is_no_reason_to_doubt(tmp_path: Path, tasks: TaskSession) -> None:
    recorded = ("wire", "metadata_log", "replicas")
    found = results(stored(tmp_path, recorded=recorded), tasks)["whole-run"]
    assert (found.validity, found.reason) == (Validity.VALID, "")


def test_a_damaged_tape_is_unknown_for_the_checks_that_read_it(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = stored(tmp_path)
    path = run.table_path("wire")
    path.write_bytes(path.read_bytes()[:-100])
    found = results(run, tasks)
    assert str(path) in found["stale-epoch-join"].reason
    assert found["ineligible-member"].validity is Validity.VALID


def _results_with(kernel: TableKernel, path: Path, tasks: TaskSession) -> dict[str, CheckResult]:
    """A good check and one with this kernel, defined in a test as workers import no tests."""
    good, other, _ = CHECKS
    found = results(stored(path), tasks, [good, replace(other, kernel=kernel)])
    assert found[EMPTY].validity is Validity.VALID
    assert found[NOT_IN_REPLICAS].validity is Validity.UNKNOWN
    return found


def test_a_check_that_crashes_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def crash(_: Tables, __: Facts) -> Judged:
        raise ZeroDivisionError("no luck")

    found = _results_with(crash, tmp_path, tasks)
    assert "the check crashed: ZeroDivisionError: no luck" in found[NOT_IN_REPLICAS].reason


@pytest.mark.spark
def test_a_check_that_kills_its_process_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def kill(_: Tables, __: Facts) -> Judged:
        os.kill(os.getpid(), signal.SIGKILL)
        return ()

    found = _results_with(kill, tmp_path, tasks)
    assert found[NOT_IN_REPLICAS].reason.startswith("its job died: ")
    assert "Python worker exited unexpectedly" in found[NOT_IN_REPLICAS].reason


def test_a_group_that_crashes_as_a_whole_leaves_its_checks_unknown(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def crash(_: Question) -> GroupAnswers:
        raise ZeroDivisionError("no luck")

    broken = CheckGroup(name="luck", entries=(entry_of("real-time-lag"),), answer=crash)
    verdict = check_run(stored(tmp_path), session=tasks, groups=[broken])
    found = {one.check: one for one in verdict.checks}
    assert found["real-time-lag"].reason == "the checks of luck crashed: ZeroDivisionError: no luck"
    assert found["truncated-below-high-watermark"].validity is Validity.INVALID
