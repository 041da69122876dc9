import hashlib
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from recording_model import Model, Producer
from sealed_runs import sealed_table
from test_manifest import MANIFEST

from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import FaultJournal
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.operation import Outcome
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, RUN_TABLES
from fencepost.history.seal import seal
from fencepost.history.writer import bucket_of

ROOT = Path(__file__).parents[2]
SENDS = 24_000

FILE_COUNT = len(RUN_TABLES) + 2 * (RECORD_BUCKET_COUNT - 1)
"""One a table, but for the two that lie in buckets."""


def recorded(root: Path, *, sends: int = 50) -> tuple[RunDirectory, Model]:
    run = RunDirectory(root)
    run.raw.mkdir()
    model = Model()
    producer = Producer(run.raw, model, process=1, slot_count=max(64, sends))
    values = producer.invoke([0, 0, 0, 1] * (sends // 4), 5)
    producer.complete([(value, 9, Outcome.OK, 0) for value in values[::2]], 8)
    producer.recorder.close()
    with FaultJournal(run.raw, Clock(0)) as journal:
        journal.begin("kill", ["broker-1"])
    return run, model


def files(directory: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(directory)): (
            path.stat().st_mtime_ns,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in sorted(directory.rglob("*"))
        if path.is_file()
    }


def test_sealing_twice_changes_nothing(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    seal(run)
    once = files(tmp_path)
    seal(run)
    assert files(tmp_path) == once
    assert not run.raw.exists()


def test_reading_a_run_does_not_seal_it(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    with pytest.raises(HarnessError, match="is not sealed: `fencepost check` seals it"):
        load_table(run, "operations")
    assert not run.history.exists()


def test_the_manifest_gets_the_digest_of_every_sealed_file(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    write_manifest(run.manifest_path, MANIFEST)
    seal(run)
    manifest = read_manifest(run.manifest_path)
    found = {f"history/{name}": digest for name, (_, digest) in files(run.history).items()}
    assert manifest == replace(MANIFEST, digests=found)
    assert len(found) == FILE_COUNT


def test_digests_that_are_lost_later_are_not_noted_anew(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    write_manifest(run.manifest_path, MANIFEST)
    seal(run)
    write_manifest(run.manifest_path, MANIFEST)
    seal(run)
    assert not read_manifest(run.manifest_path).digests


def test_what_others_put_beside_the_recording_stays(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path)
    (run.raw / "notes.txt").write_text("mine")
    seal(run)
    assert [path.name for path in run.raw.iterdir()] == ["notes.txt"]


def test_a_run_that_is_still_recorded_is_not_sealed(tmp_path: Path) -> None:
    run, model = recorded(tmp_path)
    living = Producer(run.raw, model, process=2, slot_count=4)
    with pytest.raises(HarnessError, match=r"producer-2-000000\.segment is still being written"):
        seal(run)
    living.recorder.close()
    with FaultJournal(run.raw.parent, Clock(0)):
        seal(run)


def test_a_journal_that_is_still_written_is_not_sealed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    with (
        FaultJournal(run.raw, Clock(0)),
        pytest.raises(HarnessError, match=r"faults\.jsonl is still being written"),
    ):
        seal(run)


def test_a_run_without_a_recording_is_named(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="nothing was recorded"):
        seal(RunDirectory(tmp_path))
    with pytest.raises(HarnessError, match="cannot seal"):
        seal(RunDirectory(tmp_path / "absent"))


# What a seal shows of its progress, from its first sign to its last.
MOMENTS: dict[str, Callable[[RunDirectory], bool]] = {
    "begun": lambda run: (run.root / ".history.building").exists(),
    "operations": lambda run: any(run.root.glob(".history.building/operations/*")),
    "buckets": lambda run: any(run.root.glob(".history.building/records/*")),
    "last bucket": lambda run: any(run.root.glob(".history.building/records/bucket-15*")),
    "samples": lambda run: (run.root / ".history.building" / "samples.parquet").exists(),
    "in place": lambda run: run.history.exists(),
    "digests": lambda run: bool(read_manifest(run.manifest_path).digests),
}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_seal_that_is_killed_is_done_again(tmp_path: Path, moment: str) -> None:
    run, model = recorded(tmp_path, sends=SENDS)
    write_manifest(run.manifest_path, MANIFEST)
    kill_seal_at(MOMENTS[moment], run)
    if run.history.exists():
        assert {path.name for path in run.history.iterdir()} >= {"operations", "faults.parquet"}
    else:
        assert len(list(run.raw.iterdir())) == 2
    seal(run)
    assert sealed_table(run, "operations").to_pylist() == model.operation_rows()
    assert sealed_table(run, "records").to_pylist() == model.record_rows()
    assert sealed_table(run, "faults")["fault"].to_pylist() == ["kill"]
    assert len(read_manifest(run.manifest_path).digests) == FILE_COUNT
    assert sorted(path.name for path in run.root.iterdir()) == ["history", "manifest.json"]


def kill_seal_at(moment: Callable[[RunDirectory], bool], run: RunDirectory) -> None:
    program = (
        "import sys; from pathlib import Path;"
        "from fencepost.history.run_directory import RunDirectory;"
        "from fencepost.history.seal import seal; seal(RunDirectory(Path(sys.argv[1])))"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(run.root)], cwd=ROOT)
    bound = time.monotonic() + 120
    while not moment(run) and process.poll() is None and time.monotonic() < bound:
        pass
    process.kill()
    process.wait(timeout=30)
    assert moment(run) or run.history.exists()


def test_a_key_is_in_the_file_of_its_bucket_and_a_large_one_has_row_groups_of_its_own(
    tmp_path: Path,
) -> None:
    run, _ = recorded(tmp_path, sends=SENDS)
    seal(run)
    found = {}
    for path in sorted((run.history / "records").iterdir()):
        with pq.ParquetFile(path) as file:
            groups = [
                file.read_row_group(group, columns=["key"])["key"].to_pylist()
                for group in range(file.num_row_groups)
            ]
        for keys in groups:
            for key in set(keys):
                found.setdefault(key, []).append((path.name, set(keys)))
    for key, places in found.items():
        assert {name for name, _ in places} == {f"bucket-{bucket_of(key):02}.parquet"}
    assert all(keys == {"t-1"} for _, keys in found["t-1"])


@pytest.mark.parametrize("name", RUN_TABLES)
def test_a_file_reads_back_with_the_very_schema(tmp_path: Path, name: str) -> None:
    run, _ = recorded(tmp_path)
    table = sealed_table(run, name)
    assert table.schema.equals(RUN_TABLES[name])
