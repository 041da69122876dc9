"""`fencepost history`, as a user calls it."""

import io
import sys
from pathlib import Path

import pytest
from sealed_runs import sealed_table

from fencepost.harness.cli.main import WRONG_USE, main
from fencepost.history.manifest import read_manifest
from fencepost.history.models import Model
from fencepost.history.run_directory import find_run


def called(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["history", *words])
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_a_made_up_history_goes_out_and_comes_in_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results, file = str(tmp_path / "results"), str(tmp_path / "h.edn")
    making = ["--operations", "40", "--keys", "2", "--seed", "3", "--plant", "stale-read"]
    assert called("generate", "--model", "register", *making, "--results", results) == 0
    made = find_run("generated", tmp_path / "results")
    assert capsys.readouterr().out == f"fencepost check {made.root}\n"
    assert "--plant stale-read --seed 3" in read_manifest(made.manifest_path).command
    assert called("export", "generated", file, "--format", "edn", "--results", results) == 0
    into = ["--format", "edn", "--model", "register", "--independent", "--results", results]
    assert called("import", file, *into) == 0
    again = find_run("imported", tmp_path / "results")
    tables = [sealed_table(run, "model_operations").sort_by("index") for run in (made, again)]
    assert tables[0].equals(tables[1])


def test_a_history_can_come_from_standard_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = b'{"process":0,"f":"add","call_ns":1,"return_ns":2,"outcome":"ok","value":3}\n'
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(line)))
    words = ["--format", "jsonl", "--model", "counter", "--results", str(tmp_path)]
    assert called("import", "-", *words) == 0
    table = sealed_table(find_run("imported", tmp_path), "model_operations")
    assert table["value"].to_pylist() == [3]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["import", "nowhere", "--format", "edn", "--model", "set"], "cannot read nowhere"),
        (["import", "-", "--format", "edn", "--model", "list-append"], "--isolation is needed"),
        (["import", "-", "--format", "parquet", "--model", "kafka"], "needs --format jsonl or edn"),
        (["generate", "--model", "set", "--plant", "aging"], "to plant: lost-write, early-read"),
        (["generate", "--model", "set", "--name", "a/b"], "name 'a/b'"),
    ],
)
def test_what_cannot_be_is_wrong_use_and_leaves_nothing(
    words: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    assert called(*words, "--results", str(results)) == WRONG_USE
    assert expected in capsys.readouterr().err
    assert not results.exists()


@pytest.mark.parametrize(
    "model", [*(str(model) for model in Model if model is not Model.ZNODE), "kafka"]
)
def test_every_model_can_be_made_up(model: str, tmp_path: Path) -> None:
    words = ["--operations", "500", "--keys", "2", "--clients", "3", "--seed", "1"]
    assert called("generate", "--model", model, *words, "--results", str(tmp_path)) == 0
    manifest = read_manifest(find_run("generated", tmp_path).manifest_path)
    assert manifest.run_id.startswith("generated/")
    assert manifest.digests
    assert manifest.model == ("" if model == "kafka" else model)
