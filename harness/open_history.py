"""Open histories: files of other tools to sealed runs, and runs to files.

An import is built beside its place and moved into it when it is whole, so that a file that is
refused leaves nothing behind.
"""

import io
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from history.failure import HarnessError, UsageError
from history.key_spill import KeySpill
from history.manifest import Manifest, Promises, RunState, read_manifest, write_manifest
from history.model_writer import write_model_history
from history.models import MODEL_TABLES, Isolation, Model
from history.open.edn import edn_forms
from history.open.event import EventReader
from history.open.kafka import KafkaReader
from history.open.kafka_rows import client_tables, operations_with_records
from history.open.kafka_writing import kafka_edn, kafka_json_events, kafka_lines
from history.open.lines import json_objects, text_lines
from history.open.parquet import originals_in, parquet_tables, table_pieces, write_parquet
from history.open.reading import (
    SOLE_KEY,
    Numbered,
    complete_operations,
    events_of,
    operations_of_events,
    peeked,
)
from history.open.rows import row_tables
from history.open.scalars import ORIGINALS, ORIGINALS_FILE, Numbering, Originals
from history.open.writing import complete_lines, edn_events, json_events, operations_in
from history.reader import load_table, table_files
from history.run_directory import RunDirectory, refuse_name
from history.schema import TABLES
from history.seal import seal
from history.writer import write_tables

__all__ = [
    "KAFKA",
    "Format",
    "Import",
    "Imported",
    "Place",
    "building_run",
    "exported",
    "imported",
    "new_manifest",
]

KAFKA: Final = "kafka"
"""Beside the models: what clients did to the partitions of Kafka."""

_ORDERS: Final = {
    "model_operations": ("index",),
    "micro_operations": ("transaction", "position"),
}


class Format(StrEnum):
    """How a history stands in a file."""

    JSONL = "jsonl"
    PARQUET = "parquet"
    EDN = "edn"


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    """What to import, and as what."""

    path: Path | None
    """None: standard input."""
    format: Format
    model: str
    """Of `history.models.Model`, or KAFKA."""
    name: str
    isolation: Isolation | None = None
    keyed_values: bool = False
    """Values are vectors of a key and a value, as jepsen.independent has them."""
    idempotent: bool = False
    """Of KAFKA: a value that stands twice breaks a promise."""
    command: str = ""

    @property
    def source(self) -> str:
        """As messages name the file."""
        return "standard input" if self.path is None else str(self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """A run that was imported."""

    run: RunDirectory
    left_out: Counter[str]
    """Lines that no model is about, by what they are."""


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


def new_manifest(*, model: str, name: str, title: str, command: str, seed: int = 0) -> Manifest:
    """The manifest of a history that no run of ours recorded."""
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
class Place:
    """Where a run is built, and where it is once it is whole."""

    building: RunDirectory
    run: RunDirectory | None = None


@contextmanager
def building_run(name: str, *, results: Path) -> Iterator[Place]:
    """A directory to build a sealed run in, manifest included, which becomes the newest of `name`.

    Raises UsageError for a name that cannot be a directory's, HarnessError if the disk refuses;
    what was built is then removed.
    """
    refuse_name(name)
    fresh = not results.exists()
    place = Place(RunDirectory(results / f".building.{os.getpid()}"))
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
    """The manifest last: what has none is no run yet."""
    for directory in (run.raw, run.nodes, run.clients):
        directory.rmdir()
    building.history.replace(run.history)
    manifest = read_manifest(building.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, run_id=run_id))


def _refuse_combination(what: Import) -> None:
    transactions = what.model == Model.LIST_APPEND
    if (what.isolation is not None) is not transactions:
        raise UsageError(
            f"--isolation goes with --model {Model.LIST_APPEND}, and only with it: it is what the "
            "transactions were promised"
        )
    if what.keyed_values and (transactions or what.model == KAFKA or what.format is Format.PARQUET):
        raise UsageError(f"--independent does not go with {what.model} in {what.format}")
    if what.model == KAFKA and what.format is Format.PARQUET:
        raise UsageError("clients of Kafka are imported from jsonl or edn")
    if what.idempotent and what.model != KAFKA:
        raise UsageError(f"--idempotent goes with --model {KAFKA}")


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
    """Whether the lines are complete operations, and the form of each."""
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
    consume = {"assign": "assign", "subscribe": "subscribe", "": "assign"}
    how = "both" if len(reader.consumed) > 1 else consume["".join(reader.consumed)]
    write_tables(run, operations=operations, records=records)
    originals = numbering.table()
    if originals.num_rows:
        pq.write_table(originals, run.history / ORIGINALS_FILE, compression="zstd")
    keys = tuple(sorted(set(records["key"].unique().to_pylist())))
    promises = Promises(idempotent=what.idempotent, acks="", consume=how)
    write_manifest(
        run.manifest_path, replace(manifest, end_ns=max(times), keys=keys, promises=promises)
    )
    seal(run)
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
