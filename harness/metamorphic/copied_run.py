"""A copy of a stored run whose tables can be changed: sealed anew, it is judged like any run."""

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, read_manifest, write_manifest
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, TABLES
from fencepost.history.seal import note_digests
from fencepost.history.writer import bucket_file, bucket_of

_BY_KEY = ("records", "replica_records")

Change = Callable[[pa.Table], pa.Table]


class CopiedRun:
    """A copy in a directory of its own. Files that are not changed are those of the original."""

    def __init__(self, original: RunDirectory, root: Path) -> None:
        """Make the copy at `root`, in the place of an earlier one.

        Raises HarnessError if the disk refuses, or if something else than a run is there.
        """
        self.run = RunDirectory.replace(root)
        try:
            shutil.copytree(original.history, self.run.history, copy_function=_linked)
            for path in (original.manifest_path, original.scenario_path, original.play_path):
                if path.is_file():
                    shutil.copy(path, root)
        except OSError as error:
            raise HarnessError(f"cannot copy {original.root} to {root}: {error}") from error

    def remove(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.run.root)

    @property
    def manifest(self) -> Manifest:
        """The manifest as it stands."""
        return read_manifest(self.run.manifest_path)

    def state(self, **fields: Any) -> None:
        """Change fields of the manifest."""
        write_manifest(self.run.manifest_path, replace(self.manifest, **fields))

    def rewrite_manifest(self, change: Callable[[Any], Any]) -> None:
        """Change the manifest as JSON."""
        content = json.loads(self.run.manifest_path.read_text(encoding="utf-8"))
        self.run.manifest_path.write_text(json.dumps(change(content)), encoding="utf-8")

    def has(self, name: str) -> bool:
        """Return whether the run has the table."""
        return self.run.table_path(name).exists()

    @property
    def tables(self) -> Iterator[str]:
        """Yield the names of the tables that it has."""
        return filter(self.has, TABLES)

    def table(self, name: str) -> pa.Table:
        """Return a table, whole."""
        return load_table(self.run, name)

    def change(self, name: str, change: Change) -> bool:
        """Change a table, file by file; return whether any file is another one than before."""
        changed = False
        for path in self._files(name):
            before = pq.read_table(path).cast(TABLES[name])
            after = change(before).cast(TABLES[name])
            if not after.equals(before):
                changed = True
                self._write(path, after)
        return changed

    def rename_keys(self, names: Mapping[str, str]) -> None:
        """Change keys of the tables that are spread by key; each row goes to its key's file."""
        for name in filter(self.has, _BY_KEY):
            rows = self.table(name)
            keys = [names.get(key, key) for key in rows["key"].to_pylist()]
            place = rows.schema.get_field_index("key")
            renamed = rows.set_column(place, rows.schema.field("key"), pa.array(keys, pa.string()))
            order = ("operation", "position") if name == "records" else ("node", "offset")
            by = [(column, "ascending") for column in ("key", *order)]
            buckets = pa.array([bucket_of(key) for key in keys], pa.int64())
            for bucket in range(RECORD_BUCKET_COUNT):
                mine = renamed.filter(pc.equal(buckets, bucket)).sort_by(by)
                path = self.run.table_path(name) / bucket_file(self.run.history, bucket).name
                self._write(path, mine)

    def seal(self) -> None:
        """Give the manifest the digests of the files as they are now."""
        self.state(digests={})
        note_digests(self.run)

    def _files(self, name: str) -> list[Path]:
        path = self.run.table_path(name)
        return sorted(path.glob("*.parquet")) if path.is_dir() else [path]

    def _write(self, path: Path, table: pa.Table) -> None:
        path.unlink(missing_ok=True)  # another name of the original's file
        pq.write_table(table.cast(TABLES[_table_of(path)]), path)


def _linked(source: str, target: str) -> None:
    """Give the file another name, or, on another disk, a copy of its content."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _table_of(path: Path) -> str:
    """Return the table that a file of a history belongs to."""
    return path.stem if path.stem in TABLES else path.parent.name
