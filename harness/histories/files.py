"""Histories as files of other tools: imported as sealed runs, or exported from any run.

A file that is refused leaves nothing.
"""

import io
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fencepost.harness.histories.built_run import KAFKA, building_run, new_manifest
from fencepost.harness.histories.format import Format
from fencepost.history.failure import UsageError
from fencepost.history.key_spill import KeySpill
from fencepost.history.manifest import Consumed, Manifest, Promises, read_manifest, write_manifest
from fencepost.history.model_writer import write_model_history
from fencepost.history.models import MODEL_TABLES, OPEN_MODELS, Isolation, Model
from fencepost.history.open.edn import edn_forms
from fencepost.history.open.event import EventReader
from fencepost.history.open.kafka import KafkaReader
from fencepost.history.open.kafka_writing import kafka_edn, kafka_json_events, kafka_lines
from fencepost.history.open.lines import json_objects, text_lines
from fencepost.history.open.parquet import originals_in, parquet_tables, table_pieces, write_parquet
from fencepost.history.open.reading import (
    SOLE_KEY,
    Numbered,
    complete_operations,
    events_of,
    operations_of_events,
    peeked,
)
from fencepost.history.open.rows import client_tables, operations_with_records, row_tables
from fencepost.history.open.scalars import ORIGINALS, ORIGINALS_FILE, Numbering, Originals
from fencepost.history.open.writing import complete_lines, edn_events, json_events, operations_in
from fencepost.history.reader import load_table, table_files
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import TABLES
from fencepost.history.seal import note_digests, seal
from fencepost.history.writer import write_tables

_ORDERS: Final = {
    "model_operations": ("index",),
    "micro_operations": ("transaction", "position"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """An import: the file, its format, and the kind of history that it becomes."""

    path: Path | None
    """The file; None: standard input."""
    format: Format
    model: str
    """A name of `history.models.Model`, or KAFKA."""
    name: str
    isolation: Isolation | None = None
    keyed_values: bool = False
    """True if values are vectors of a key and a value, as jepsen.independent has them."""
    idempotent: bool = False
    """KAFKA only: true if a value that stands twice breaks a promise."""
    command: str = ""

    @property
    def source(self) -> str:
        """The name of the file in messages."""
        return "standard input" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run that was imported."""

    run: RunDirectory
    left_out: Counter[str]
    """The counts of lines that no model is about, by kind."""


def imported(what: Import, *, results: Path) -> Imported:
    """Make a file a sealed run, `results/<name>/<time>`.

    Raises UsageError (of a malformed file: with file and line), HarnessError if the disk refuses;
    nothing is left behind then.
    """
    _refuse_combination(what)
    with building_run(what.name, results=results) as place:
        manifest = new_manifest(
            model=what.model,
            name=what.name,
            title=f"Imported from {what.source}",
            command=what.command,
        )
        with _input(what) as file:
            if what.model == KAFKA:
                left_out = _import_clients(file, what, place.building, manifest)
            else:
                left_out = _import_model(file, what, place.building, manifest)
    assert place.run is not None
    return Imported(run=place.run, left_out=left_out)


def _refuse_combination(what: Import) -> None:
    transactions = what.model == Model.LIST_APPEND
    if (what.isolation is not None) is not transactions:
        raise UsageError(
            f"--isolation is needed with --model {Model.LIST_APPEND}, and with no other: it is the "
            "isolation level that the transactions were promised"
        )
    if what.keyed_values and (transactions or what.model == KAFKA or what.format is Format.PARQUET):
        raise UsageError(
            f"--independent cannot be used with --model {what.model} --format {what.format}"
        )
    if what.model == KAFKA and what.format is Format.PARQUET:
        raise UsageError(f"--model {KAFKA} needs --format jsonl or edn")
    if what.idempotent and what.model != KAFKA:
        raise UsageError(f"--idempotent needs --model {KAFKA}")


@contextmanager
def _input(what: Import) -> Iterator[BinaryIO]:
    if what.path is None:
        yield sys.stdin.buffer
        return
    try:
        file = what.path.open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {what.path}: {error.strerror}") from error
    with file:
        yield file


def _import_model(
    file: BinaryIO, what: Import, run: RunDirectory, manifest: Manifest
) -> Counter[str]:
    model, numbering, reader = Model(what.model), Numbering(), EventReader()
    with KeySpill(run.root / "rows", TABLES[MODEL_TABLES[model]]) as spill:
        if what.format is Format.PARQUET:
            whole = io.BytesIO(file.read()) if what.path is None else file
            originals = originals_in(whole, source=what.source)
            for table in parquet_tables(whole, model=model, source=what.source):
                spill.add(table)
        else:
            operations = _operations(file, what, model, reader)
            for table in row_tables(
                operations, model=model, numbering=numbering, source=what.source
            ):
                spill.add(table)
            originals = numbering.table()
        write_model_history(
            run,
            replace(manifest, isolation=what.isolation or ""),
            spill.keys(),
            beside={ORIGINALS_FILE: originals} if originals.num_rows else {},
        )
    return Counter({"of a nemesis": reader.nemesis_count})


def _operations(
    file: BinaryIO, what: Import, model: Model, reader: EventReader
) -> Iterator[Numbered]:
    complete, numbered = _forms(file, what)
    if complete:
        return complete_operations(numbered, model=model, source=what.source)
    events = events_of(numbered, reader, source=what.source)
    return operations_of_events(
        events, model=model, keyed_values=what.keyed_values, source=what.source
    )


def _forms(file: BinaryIO, what: Import) -> tuple[bool, Iterator[tuple[int, Any]]]:
    """Return whether the lines are complete operations, and an iterator of their forms."""
    lines = text_lines(file, source=what.source)
    if what.format is Format.EDN:
        return False, edn_forms(lines, source=what.source)
    first, numbered = peeked(json_objects(lines, source=what.source))
    return first is not None and "call_ns" in first, numbered


def _import_clients(
    file: BinaryIO, what: Import, run: RunDirectory, manifest: Manifest
) -> Counter[str]:
    numbering, events = Numbering(), EventReader()
    reader = KafkaReader(numbering, source=what.source)
    complete, numbered = _forms(file, what)
    operations, records = client_tables(
        reader.of_lines(numbered)
        if complete
        else reader.of_events(events_of(numbered, events, source=what.source))
    )
    times = (pc.max(operations[name]).as_py() or 0 for name in ("call_ns", "return_ns"))
    how: Consumed = "subscribe" if "subscribe" in reader.consumed else "assign"
    if len(reader.consumed) > 1:
        how = "both"
    write_tables(run, operations=operations, records=records)
    originals = numbering.table()
    if originals.num_rows:
        pq.write_table(originals, run.history / ORIGINALS_FILE, compression="zstd")
    keys = tuple(sorted(set(records["key"].unique().to_pylist())))
    promises = Promises(idempotent=what.idempotent, acks="", consume=how)
    write_manifest(
        run.manifest_path, replace(manifest, end_ns=max(times), keys=keys, promises=promises)
    )
    note_digests(run)
    return reader.left_out + Counter({"of a nemesis": events.nemesis_count})


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
            f"a history of the model {manifest.model} cannot be exported; its operations are in "
            f"Parquet: {run.history / MODEL_TABLES[Model(manifest.model)]}"
        )
    if manifest.model:
        _export_model(run, Model(manifest.model), file, notation=notation, as_events=as_events)
    elif notation is Format.PARQUET:
        raise UsageError(
            f"nothing to convert: the tables of this run are Parquet already: {run.history}"
        )
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
