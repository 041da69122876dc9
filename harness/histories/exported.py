"""Histories of runs, open ones and the harness's own, to files that other tools read."""

from collections.abc import Iterable
from typing import BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.histories.format import Format
from history.failure import UsageError
from history.manifest import Manifest, read_manifest
from history.models import MODEL_TABLES, OPEN_MODELS, Model
from history.open.kafka_rows import operations_with_records
from history.open.kafka_writing import kafka_edn, kafka_json_events, kafka_lines
from history.open.parquet import table_pieces, write_parquet
from history.open.reading import SOLE_KEY
from history.open.scalars import ORIGINALS, ORIGINALS_FILE, Originals
from history.open.writing import complete_lines, edn_events, json_events, operations_in
from history.reader import load_table, table_files
from history.run_directory import RunDirectory
from history.seal import seal

__all__ = ["exported"]

_ORDERS: Final = {
    "model_operations": ("index",),
    "micro_operations": ("transaction", "position"),
}


def exported(
    run: RunDirectory, file: BinaryIO, *, notation: Format, as_events: bool = False
) -> None:
    """Write the history of a run to a file.

    `as_events`: JSON lines of invocations and completions, as EDN has them. JSON lines and EDN are
    put in order in memory (some 200 bytes an operation). Raises UsageError for a format that the
    history has none of.
    """
    manifest = read_manifest(run.manifest_path)
    if not run.history.is_dir():
        seal(run)
    if manifest.model and manifest.model not in OPEN_MODELS:
        raise UsageError(
            f"a history of the model {manifest.model} is given out in no format; its operations "
            f"are Parquet: {run.history / MODEL_TABLES[Model(manifest.model)]}"
        )
    if manifest.model:
        _export_model(run, Model(manifest.model), file, notation=notation, as_events=as_events)
    elif notation is Format.PARQUET:
        raise UsageError(f"the tables of this run are Parquet: {run.history}")
    else:
        _export_clients(run, manifest, file, notation=notation, as_events=as_events)


def _export_model(
    run: RunDirectory, model: Model, file: BinaryIO, *, notation: Format, as_events: bool
) -> None:
    name = MODEL_TABLES[model]
    if notation is Format.PARQUET:
        tables = (piece for path in table_files(run, name) for piece in table_pieces(path, name))
        write_parquet(tables, file, model=model, originals=_originals_table(run))
        return
    order = [(column, "ascending") for column in _ORDERS[name]]
    table = load_table(run, name).sort_by(order)
    operations = operations_in(table, model=model, originals=Originals(_originals_table(run)))
    if notation is Format.EDN:
        keyed = pc.unique(table["key"]).to_pylist() != [SOLE_KEY]
        lines = edn_events(operations, model=model, keyed_values=keyed)
    elif as_events:
        lines = json_events(operations, model=model)
    else:
        lines = complete_lines(operations, model=model)
    _write(lines, file)


def _export_clients(
    run: RunDirectory, manifest: Manifest, file: BinaryIO, *, notation: Format, as_events: bool
) -> None:
    operations = operations_with_records(load_table(run, "operations"), load_table(run, "records"))
    originals = Originals(_originals_table(run))
    subscribed = manifest.promises.consume == "subscribe"
    if notation is Format.EDN:
        lines = kafka_edn(operations, originals=originals, subscribed=subscribed)
    elif as_events:
        lines = kafka_json_events(operations, originals=originals, subscribed=subscribed)
    else:
        lines = kafka_lines(operations, originals=originals)
    _write(lines, file)


def _originals_table(run: RunDirectory) -> pa.Table:
    path = run.history / ORIGINALS_FILE
    return pq.read_table(path) if path.is_file() else ORIGINALS.empty_table()


def _write(lines: Iterable[str], file: BinaryIO) -> None:
    file.writelines(line.encode() for line in lines)
