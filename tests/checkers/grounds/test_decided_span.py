"""A log that begins with a snapshot does not tell of the whole run."""

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
from manifests import MANIFEST
from metadata_logs import metadata_log

from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.grounds.decided_span import decided_span, known_in_sum_until_s
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.history.run_directory import RunDirectory

WHOLE = "1 topic t\n2 partition t-0 replicas 1,2 isr 1,2 leader 1\n420 change t-0 isr 1"
CUT = """
    snapshot 400 topic t
    snapshot 400 partition t-0 replicas 1,2 isr 1,2 leader 1
    420 change t-0 isr 1
"""


def asked(text: str, root: Path, *required: str) -> CheckResult:
    run = RunDirectory(root)
    run.history.mkdir(parents=True, exist_ok=True)
    pq.write_table(metadata_log(controller_1=text), run.table_path("metadata_log"))
    manifest = replace(
        MANIFEST,
        recorded=("metadata_log",),
        node_ids={"controller-1": 1000},
        required_checks=required,
    )
    return decided_span(run, manifest, entry_of)


def test_what_is_known_in_sum_alone_is_told_with_its_span(tmp_path: Path) -> None:
    found = asked(CUT, tmp_path)
    assert found.validity is Validity.VALID
    # Appended at 42 s, by a clock that may be off by a step and its drift.
    assert 42 < known_in_sum_until_s(Verdict.of([found], run_id="s/1")) < 42.3
    assert not known_in_sum_until_s(Verdict.of([asked(WHOLE, tmp_path)], run_id="s/1"))


def test_a_demanded_check_of_the_log_judges_all_of_the_run_or_the_run_is_unknown(
    tmp_path: Path,
) -> None:
    found = asked(CUT, tmp_path, "stale-epoch-join", "lost-write")
    assert found.validity is Validity.UNKNOWN
    assert found.reason.startswith("what was decided before 42.1")
    assert found.reason.endswith(
        "is known in sum alone (a snapshot), and stale-epoch-join is demanded"
    )
    assert asked(CUT, tmp_path, "lost-write").validity is Validity.VALID
    assert asked(WHOLE, tmp_path, "stale-epoch-join").validity is Validity.VALID
