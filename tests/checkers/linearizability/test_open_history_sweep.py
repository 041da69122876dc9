"""Keys in slabs and pieces, in tasks: the same answers as in one piece, and none costs another."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from proving import assert_proof
from small_versions import Op, drawn, table

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.group import Sweep
from fencepost.checkers.linearizability.model_files import outline
from fencepost.checkers.linearizability.slabs import KeyRowGroup, cuts
from fencepost.checkers.linearizability.tasks import Keys, Search, Sum, Verify
from fencepost.checkers.linearizability.versioned import NAME, VERSIONED, nonlinearizable
from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.runner.tasks import InProcessTasks, JobError, Parcel, TaskSession
from fencepost.history.models import Model
from fencepost.history.schema import MODEL_OPERATIONS

pytestmark = pytest.mark.slow


def written(path: Path, keys: dict[str, list[Op]], *, group_rows: int) -> SealedFile:
    """A file whose row groups hold so many rows of one key, or one whole key."""
    path.unlink(missing_ok=True)
    with pq.ParquetWriter(path, MODEL_OPERATIONS, store_schema=False) as writer:
        for key, operations in sorted(keys.items()):
            rows = table(sorted(operations, key=lambda one: one.call))
            words = pa.array([key] * rows.num_rows, pa.string())
            writer.write_table(
                rows.set_column(2, MODEL_OPERATIONS.field("key"), words), row_group_size=group_rows
            )
    return SealedFile(path=str(path), digest="")


@dataclass
class DeadlyTasks:
    """Tasks that run here, and die where they are about these keys."""

    deadly: frozenset[str]
    cores: int = 1

    def parcels(self, deal: Any, *args: Any, **others: Any) -> list[Parcel]:
        keys = {_key(piece) for piece in deal.tasks if not isinstance(piece, Verify)}
        if keys & self.deadly:
            raise JobError("the worker was killed")
        return InProcessTasks().parcels(deal, *args, **others)


def _key(piece: Keys | Sum | Search) -> str | None:
    return piece.groups.key if isinstance(piece, Keys) else piece.key


def here(
    file: SealedFile, model: Model, *, slab_rows: int, deadly: frozenset[str] = frozenset()
) -> Sweep:
    return Sweep(
        session=DeadlyTasks(deadly),
        model=model,
        outlines=[outline(file)],
        budget_s=1.0,
        slab_rows=slab_rows,
    )


def long_history(random: Random, model: Model, *, parts: int) -> list[Op]:
    """Small histories one after the other in time, all about the same few versions."""
    moved = []
    for part in range(parts):
        for one in drawn(random, model):
            end = None if one.end is None else one.end + 3 * part
            moved.append(
                Op(
                    f=one.f,
                    call=one.call + 3 * part,
                    end=end,
                    outcome=one.outcome,
                    error=one.error,
                    expected=one.expected,
                    version=one.version,
                    value=one.value,
                )
            )
    return moved


@pytest.mark.parametrize("model", sorted(VERSIONED))
@given(random=st.randoms(use_true_random=True), parts=st.integers(1, 3))
def test_slabs_read_from_row_groups_say_what_the_whole_says(
    model: Model, random: Random, parts: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    operations = long_history(random, model, parts=parts)
    path = tmp_path_factory.getbasetemp() / "slabs.parquet"
    sweep = here(written(path, {"k": operations}, group_rows=3), model, slab_rows=5)
    (row,) = sweep.findings().to_pylist()
    whole = nonlinearizable("k", table(sorted(operations, key=lambda one: one.call)), model)
    assert not row["unknown"]
    assert (row["never_count"] == 0) == (whole.never_count == 0)
    assert row["case_count"] == whole.case_count
    assert all(anomaly["operations"] for anomaly in row["anomalies"])
    assert not sweep.unreadable


def test_slabs_cover_all_versions_once_and_every_row_group_is_owned_once() -> None:
    parts = [
        KeyRowGroup(group=0, row_count=10, low=0, high=6),
        KeyRowGroup(group=1, row_count=10, low=5, high=10**12),
        KeyRowGroup(group=2, row_count=10, low=2, high=17),
        KeyRowGroup(group=3, row_count=10, low=1 << 62, high=1 - (1 << 62)),
    ]
    slabs = cuts(parts, rows=10, versions=12)
    assert [slab.first for slab in slabs] == [0, 6, 17, 29, 41]
    assert [slab.end for slab in slabs] == [6, 17, 29, 41, 42]
    assert sorted(group for slab in slabs for group in slab.owned) == [0, 1, 2, 3]
    for slab in slabs:
        touching = [one.group for one in parts if one.low < slab.end and one.high >= slab.first]
        assert set(touching) <= set(slab.groups)
        assert set(slab.owned) <= set(slab.groups)


GOOD = [
    Op(f="write", call=version, end=version, version=version, value=1) for version in range(1, 9)
]
BAD = [*GOOD, Op(f="read", call=9, end=9, version=3, value=1)]


def test_a_key_whose_tasks_die_is_unknown_and_no_other(tmp_path: Path) -> None:
    file = written(
        tmp_path / "f.parquet", {"a": BAD, "b": GOOD, "c": GOOD, "d": GOOD}, group_rows=3
    )
    sweep = here(file, Model.VERSIONED_REGISTER, slab_rows=4, deadly=frozenset(["b", "d"]))
    rows = {row["key"]: row for row in sweep.findings().to_pylist()}
    assert {key for key, row in rows.items() if row["unknown"]} == {"b", "d"}
    assert rows["b"]["unknown"] == "b: its job died: the worker was killed"
    assert rows["a"]["never_count"]
    assert not rows["c"]["never_count"]


def test_the_witnesses_of_a_large_key_are_found_where_they_lie(tmp_path: Path) -> None:
    file = written(tmp_path / "f.parquet", {"a": BAD}, group_rows=2)
    (row,) = here(file, Model.VERSIONED_REGISTER, slab_rows=3).findings().to_pylist()
    assert row["anomalies"][0]["operations"] == [8, 3]
    proof = Proof.of_columns(row["anomalies"][0])
    read = {"operation": 8, "version": 3, "value": 1, "call": 9, "return_": 9}
    assert_proof(proof, "read {operation} found version {version}", **read)


def test_a_file_that_is_not_the_sealed_one_is_not_believed(tmp_path: Path) -> None:
    file = written(tmp_path / "f.parquet", {"a": GOOD}, group_rows=2)
    sweep = here(SealedFile(path=file.path, digest="0" * 64), Model.VERSIONED_REGISTER, slab_rows=3)
    sweep.findings()
    (reason,) = sweep.unreadable
    assert "is not what was sealed" in reason


@pytest.mark.spark
def test_a_kernel_that_kills_its_worker_costs_only_its_key(
    tmp_path: Path, tasks: TaskSession
) -> None:
    # Defined here, it travels to the workers by value.
    def kills(key: str, _: pa.Table, budget: Budget) -> Found:
        assert budget.seconds > 0
        if key == "b":
            os.kill(os.getpid(), signal.SIGKILL)
        if key == "c":
            raise MemoryError
        return none(NAME, key, cases=0)

    path = tmp_path / "f.parquet"
    rows = [
        table(GOOD).set_column(2, MODEL_OPERATIONS.field("key"), pa.array([key] * len(GOOD)))
        for key in ("a", "b", "c", "d")
    ]
    pq.write_table(pa.concat_tables(rows), path, store_schema=False)
    sweep = Sweep(
        session=tasks,
        model=Model.REGISTER,
        outlines=[outline(SealedFile(path=str(path), digest=""))],
        budget_s=60.0,
        kernels={Model.REGISTER: kills},
    )
    found = {row["key"]: row["unknown"] for row in sweep.findings().to_pylist()}
    assert (found["a"], found["d"]) == (None, None)
    assert found["b"].startswith("b: its job died: ")
    assert "Python worker exited unexpectedly" in found["b"]
    assert found["c"].startswith("c: it ran out of its")
    assert not sweep.unreadable
