"""One key that no search can judge costs its own answer and no other."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from manifests import MANIFEST

from fencepost.generators.models import ModelRecipe, model_table
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_KEYS = 20
_SWAPS = 48
_VALUES = 6


def _impossible(index: int, call_ns: int) -> pa.Table:
    """Swaps that are all open at once, from value to value, so that no order uses all of them.

    They are the edges of a graph: an order is a trail over all of them. Each value has as many ways
    in as out, apart from three that have one way out too many: there is no such trail, and to see
    that by search takes trying them all.
    """
    rng = np.random.default_rng(0)
    around = [int(value) for value in rng.integers(_VALUES, size=_SWAPS)]
    edges = [*zip(around, [*around[1:], around[0]], strict=True), (0, 1), (2, 1), (3, 1)]
    write = {"process": 0, "f": "write", "value": around[0], "call_ns": call_ns}
    swaps = [
        {"process": 1 + number, "f": "cas", "expected": old, "value": new, "call_ns": call_ns + 10}
        for number, (old, new) in enumerate(edges)
    ]
    rows = [
        row
        | {"index": index + place, "key": "impossible", "outcome": "ok"}
        | {"return_ns": call_ns + (5 if row["f"] == "write" else 1000)}
        for place, row in enumerate([write, *swaps])
    ]
    return pa.Table.from_pylist(rows, schema=MODEL_OPERATIONS)


def _write(run: RunDirectory) -> None:
    easy = model_table(ModelRecipe(model=Model.REGISTER, operations=4000, keys=_KEYS))
    last_ns = pc.max(easy["call_ns"]).as_py()
    hard = _impossible(easy.num_rows, last_ns + 1_000_000_000)

    def keys() -> Iterator[tuple[str, list[pa.Table]]]:
        for key in easy["key"].unique().to_pylist():
            yield key, [easy.filter(pc.equal(easy["key"], key))]
        yield "impossible", [hard]

    manifest = replace(MANIFEST, model=Model.REGISTER.value, end_ns=last_ns)
    write_model_history(run, manifest, keys())


def _checked(run: RunDirectory, *limits: str) -> dict[str, Any]:
    ended = subprocess.run(
        [sys.executable, "-m", "fencepost", "check", str(run.root), "--json", *limits],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    return json.loads(ended.stdout)[0]["checks"]


def test_with_2_gb_and_30_s_all_keys_but_the_impossible_one_get_an_answer(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    _write(run)
    checks = _checked(run, "--memory", "2G", "--budget", "30s", "--spark-master", "local[2]")
    answer = checks["nonlinearizable"]
    assert answer["validity"] == "unknown"
    assert answer["reason"].startswith(f"{_KEYS} of {_KEYS + 1} keys checked; ")
    assert "ran out of its" in answer["reason"]
    assert "operations of impossible" in answer["reason"]
