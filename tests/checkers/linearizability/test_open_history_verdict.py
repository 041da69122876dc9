"""Sealed open histories of objects, from their files to their verdict."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from manifests import MANIFEST
from small_versions import Op, table

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.manifest import Promises
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS

GOOD = [
    Op(f="write", call=version, end=version, version=version, value=1) for version in range(1, 6)
]
STALE = Op(f="read", call=9, end=9, version=3, value=1)


def _keyed(key: str, operations: list[Op], *, first_index: int) -> pa.Table:
    rows = table(operations)
    index = pa.array(range(first_index, first_index + rows.num_rows), pa.int64())
    return rows.set_column(0, MODEL_OPERATIONS.field("index"), index).set_column(
        2, MODEL_OPERATIONS.field("key"), pa.array([key] * rows.num_rows, pa.string())
    )


def _judged(
    root: Path, tasks: TaskSession, tables: list[tuple[str, pa.Table]], **planned: Any
) -> dict[str, CheckResult]:
    run = RunDirectory(root)
    manifest = replace(
        MANIFEST,
        model=Model.VERSIONED_REGISTER.value,
        promises=Promises(idempotent=False, acks="", consume="assign"),
        **planned,
    )
    write_model_history(run, manifest, [(key, [rows]) for key, rows in tables])
    return {one.check: one for one in check_run(run, session=tasks).checks}


@pytest.mark.spark
def test_the_key_that_is_wrong_is_named_with_its_operations(
    tmp_path: Path, tasks: TaskSession
) -> None:
    keys = [
        ("a", _keyed("a", GOOD, first_index=0)),
        ("b", _keyed("b", [*GOOD, STALE], first_index=5)),
    ]
    checks = _judged(tmp_path / "run", tasks, keys)
    assert checks["whole-history"].validity is Validity.VALID
    wrong = checks["nonlinearizable"]
    assert (wrong.validity, wrong.figures["keys_count"]) == (Validity.INVALID, 2)
    assert (wrong.examples[0].key, wrong.examples[0].operations) == ("b", (10, 8))


def test_nothing_rests_on_a_history_that_lacks_operations(
    tmp_path: Path, tasks: TaskSession
) -> None:
    lacking = _keyed("a", [*GOOD, STALE], first_index=1)
    checks = _judged(tmp_path / "run", tasks, [("a", lacking)])
    assert (
        checks["whole-history"].reason == "there are 6 operations, and their indices go from 1 to 6"
    )
    assert checks["nonlinearizable"].validity is Validity.UNKNOWN


def test_a_run_of_a_workload_of_objects_has_its_grounds_and_an_open_history_none(
    tmp_path: Path, tasks: TaskSession
) -> None:
    keys = [
        ("a", _keyed("a", [*GOOD, Op(f="read", call=9, end=9, version=5, value=1)], first_index=0))
    ]
    demanding = {"cluster": "processes", "required_faults": ("kill",)}
    of_run = _judged(tmp_path / "run", tasks, keys, **demanding)["object-evidence"]
    assert (of_run.validity, of_run.reason) == (
        Validity.UNKNOWN,
        "the scenario demands kill, and none took effect",
    )
    control = _judged(tmp_path / "control", tasks, keys, cluster="processes")
    assert (control["object-evidence"].validity, control["object-evidence"].case_count) == (
        Validity.VALID,
        2,
    )
    assert "object-evidence" not in _judged(tmp_path / "open", tasks, keys)
