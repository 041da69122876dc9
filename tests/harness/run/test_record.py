"""What could not be read when a run was recorded."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from manifests import MANIFEST

from fencepost.harness.manifest import note_damages
from fencepost.harness.run.recording import first_few
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory

WORDS = "not all that lies on the disks could be read: broker-1: t-0: torn"


@pytest.mark.parametrize(
    ("damages", "told"),
    [
        ((), ()),
        (("broker-1: t-0: torn",), (WORDS,)),
        (("broker-1: t-0: torn", "a", "b"), (f"{WORDS} and 2 more",)),
    ],
)
def test_what_cannot_be_read_of_the_disks_is_one_shortfall(
    damages: Sequence[str], told: tuple[str, ...], tmp_path: Path
) -> None:
    run = RunDirectory(tmp_path)
    write_manifest(run.manifest_path, MANIFEST)
    note_damages(run, damages)
    noted = read_manifest(run.manifest_path)
    assert noted.damages == tuple(damages)
    assert noted.shortfalls == (*MANIFEST.shortfalls, *told)


def test_of_thousands_of_keys_that_were_not_read_the_first_are_named() -> None:
    keys = [f"k-{number}" for number in range(2010)]
    assert first_few(keys) == f"{', '.join(keys[:10])} and 2000 more"
    assert first_few(keys[:2]) == "k-0, k-1"
