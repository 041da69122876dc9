import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pytest

from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import (
    Manifest,
    NotWhole,
    Promises,
    RunState,
    VersionChange,
    read_manifest,
    write_manifest,
)

MANIFEST = Manifest(
    run_id="r1",
    state=RunState.RUNNING,
    scenario="kip-903",
    title="A wiped replica joins the ISR",
    seed=7,
    started_at="2025-03-04T05:06:07Z",
    origin_ns=12_345,
    command="fencepost run kip-903 --seed 7",
    fencepost_version="0.1.0",
    versions=MappingProxyType({"kafka": "3.4.1"}),
    keys=("t-0", "t-1"),
    promises=Promises(idempotent=True, acks="all", consume="assign"),
)


def test_a_manifest_comes_back_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    write_manifest(path, MANIFEST)
    assert read_manifest(path) == MANIFEST
    moved_on = replace(
        MANIFEST,
        state=RunState.RECORDED,
        end_ns=9,
        digests={"a": "00"},
        changes=(VersionChange(time_ns=7, subject="broker-1", version="4.3.1"),),
        asked_faults=("kill", "delay"),
        drawn=True,
        required_faults=("kill",),
        served_faults=(),
        known=("unregistered-leader",),
        shortfalls=("not whole",),
        not_whole=(NotWhole(shortfall="not whole", time_ns=8, broker_ids=(1, 2)),),
    )
    write_manifest(path, moved_on)
    assert read_manifest(path) == moved_on
    assert [file.name for file in tmp_path.iterdir()] == ["manifest.json"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format_version": 99}, "has format 99, expected 1"),
        ({"colour": "red"}, "wrong: colour is not a known key"),
        ({"state": "asleep"}, 'wrong: state is "asleep", expected one of "running", "recorded"'),
        ({"promises": {"acks": "all"}}, "wrong: promises.idempotent is missing"),
        ({"healed_ns": "soon"}, 'wrong: healed_ns is "soon", expected a whole number, or null'),
        ({"seed": True}, "wrong: seed is true, expected a whole number"),
        ({"end_ns": 1.5}, "wrong: end_ns is 1.5, expected a whole number, or null"),
        ({"node_ids": {"broker-1": "1"}}, 'wrong: node_ids.broker-1 is "1", expected a whole'),
        ({"keys": "t-0"}, 'wrong: keys is "t-0", expected a list'),
        ({"keys": ["t-0", 1]}, r"wrong: keys\[1\] is 1, expected a string"),
        ({"digests": ["a"]}, r'wrong: digests is \["a"\], expected an object'),
        (
            {"not_whole": [{"shortfall": "a", "time_ns": 1}]},
            r"not_whole\[0\].broker_ids is missing",
        ),
        ({"model": "abacus"}, 'wrong: model is "abacus", expected one of'),
        (
            {"promises": {"idempotent": True, "acks": "all", "consume": "sometimes"}},
            'wrong: promises.consume is "sometimes", expected one of "assign", "subscribe", "both"',
        ),
    ],
)
def test_a_manifest_of_another_shape_is_refused_by_name(
    tmp_path: Path, change: dict[str, object], message: str
) -> None:
    path = tmp_path / "manifest.json"
    write_manifest(path, MANIFEST)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(HarnessError, match=message) as raised:
        read_manifest(path)
    assert str(path) in str(raised.value)


def test_a_missing_or_torn_manifest_is_named(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with pytest.raises(HarnessError, match="cannot read the manifest"):
        read_manifest(path)
    path.write_text('{"format_version": 1, ')
    with pytest.raises(HarnessError, match="is not JSON"):
        read_manifest(path)


def test_a_draft_of_a_writer_that_was_killed_goes_with_the_next_write(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / f".manifest.json.{ended.pid}").write_text("torn")
    mine = tmp_path / f".manifest.json.{os.getppid()}"
    mine.write_text("another writer is at work")
    write_atomically(path, b"whole")
    assert {entry.name for entry in tmp_path.iterdir()} == {"manifest.json", mine.name}
