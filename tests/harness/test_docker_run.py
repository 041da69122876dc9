"""A scenario means the same on containers: the same verdict, the same files, and nothing left."""

from pathlib import Path

import pytest
from commands import Fencepost
from own_nodes import OWN_NODES
from sealed_runs import sealed_table

from fencepost.clusters.provision.cache import cache_dir
from fencepost.history.manifest import read_manifest

pytestmark = [pytest.mark.spark, pytest.mark.docker, pytest.mark.slow]


@pytest.mark.kafka
def test_a_smoke_run_on_containers_is_valid_and_can_be_repeated(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    words = ("run", "smoke", "--host", "docker", "--time-limit", "8s", "--seed", "5", "--json")
    words += ("--no-require",)  # too short for each kind of fault
    ended = fencepost(*words, results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    run = ended.run
    manifest = read_manifest(run.manifest_path)
    assert ended.said["validity"] == "valid"
    assert manifest.versions["host"] == "docker"
    assert "--host docker" in manifest.command
    assert len(list(run.nodes.glob("*/server.log"))) == 4
    # Who dialled whom is told by the address of the link, from inside of a container too.
    wire = sealed_table(run, "wire").to_pandas()
    assert {"broker-1", "broker-2", "broker-3"} <= set(wire["source"])
    assert not list((cache_dir() / "ledgers").glob(f"smoke-{run.root.name}*"))


@OWN_NODES
def test_nodes_of_our_own_run_in_containers_on_a_copy_of_this_python(
    fencepost: Fencepost, tmp_path: Path, scenario: str, flags: tuple[str, ...]
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(scenario)
    where = (*flags, "--host", "docker", "--seed", "5", "--json")
    ended = fencepost("run", str(path), *where, results=tmp_path / "results")
    assert ended.returncode == 0, ended.stderr
    assert sealed_table(ended.run, "faults")["kind"].to_pylist() == ["kill", "partition"]
