"""Runs without a cluster: built beside their place, and moved into it when whole."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, Promises, RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory, refuse_name

KAFKA: Final = "kafka"
"""The model, beside those of `Model`, of clients' operations on Kafka's partitions."""


def new_manifest(*, model: str, name: str, title: str, command: str, seed: int = 0) -> Manifest:
    """Return the manifest of a history that no run of ours recorded."""
    return Manifest(
        run_id="",
        state=RunState.RECORDED,
        scenario=name,
        title=title,
        seed=seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        origin_ns=0,
        command=command,
        fencepost_version=version("fencepost"),
        model="" if model == KAFKA else model,
        promises=Promises(idempotent=False, acks="", consume="assign"),
    )


@dataclass(slots=True)
class BuildPlace:
    """The directory in which a run is built, and the one to which it moves once it is whole."""

    building: RunDirectory
    run: RunDirectory | None = None


@contextmanager
def building_run(name: str, *, results: Path) -> Iterator[BuildPlace]:
    """A directory to build a sealed run in, manifest included, which becomes the newest of `name`.

    Raises UsageError for a name that cannot be a directory's, HarnessError if the disk refuses;
    what was built is then removed.
    """
    refuse_name(name)
    fresh = not results.exists()
    place = BuildPlace(RunDirectory(results / f".building.{os.getpid()}"))
    try:
        place.building.root.mkdir(parents=True)
        yield place
        place.run = RunDirectory.create(results, name, datetime.now(UTC))
        _move(place.building, place.run, run_id=f"{name}/{place.run.root.name}")
    except OSError as error:
        raise HarnessError(f"cannot store a run in {results}: {error}") from error
    finally:
        shutil.rmtree(place.building.root, ignore_errors=True)
        if fresh and place.run is None:
            with suppress(OSError):
                results.rmdir()


def _move(building: RunDirectory, run: RunDirectory, *, run_id: str) -> None:
    """Move the run into its place, the manifest last: a directory without one is no run yet."""
    for directory in (run.raw, run.nodes, run.clients):
        directory.rmdir()
    building.history.replace(run.history)
    manifest = read_manifest(building.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, run_id=run_id))
