"""Open histories, written sealed: the operations of any model, at any length."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, write_manifest
from fencepost.history.model_tables import Pieces, write_keys
from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, SAMPLES, TABLES
from fencepost.history.seal import note_digests
from fencepost.history.table_file import TableFile
from fencepost.history.writer import new_history


def write_model_history(
    run: RunDirectory,
    manifest: Manifest,
    keys: Iterable[tuple[str, Pieces]],
    *,
    faults: pa.Table | None = None,
    beside: Mapping[str, pa.Table] = MappingProxyType({}),
) -> Manifest:
    """Make `run` a sealed run of the model that `manifest` names; the manifest as it was written.

    keys: each key once, with pieces of MODEL_OPERATIONS (or MICRO_OPERATIONS) that hold its rows by
    index; columns of words may be dictionaries. `index` is dense over all keys, which is not
    verified. `beside`: further tables, by file name, that no check reads.

    The manifest's `end_ns`, if None, becomes the last time that any operation names; its digests
    are those of the files. Raises HarnessError if the run has a history or the disk refuses; what
    `keys` raises passes through, and no history is left.
    """
    model = Model(manifest.model)
    if run.history.exists():
        raise HarnessError(f"{run.history} exists: a sealed history is not written again")
    run.root.mkdir(parents=True, exist_ok=True)
    with new_history(run, tables=(MODEL_TABLES[model],)) as history:
        end_ns = write_keys(history, model, keys)
        _write(history / "faults.parquet", "faults", faults or FAULTS.empty_table())
        _write(history / "samples.parquet", "samples", SAMPLES.empty_table())
        for name, table in beside.items():
            pq.write_table(table, history / name, compression="zstd")
        if manifest.end_ns is None:
            manifest = replace(manifest, end_ns=end_ns)
        write_manifest(run.manifest_path, manifest)
    note_digests(run)
    return manifest


def _write(path: Path, name: str, table: pa.Table) -> None:
    assert table.schema.equals(TABLES[name]), f"{name}: {table.schema}"
    with TableFile(path, name) as file:
        file.add(table)
