"""Open histories: files of other tools to sealed runs. A file that is refused leaves nothing."""

import io
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.histories.built_run import KAFKA, building_run, new_manifest
from harness.histories.format import Format
from history.failure import UsageError
from history.key_spill import KeySpill
from history.manifest import Manifest, Promises, write_manifest
from history.model_writer import write_model_history
from history.models import MODEL_TABLES, Isolation, Model
from history.open.edn import edn_forms
from history.open.event import EventReader
from history.open.kafka import KafkaReader
from history.open.kafka_rows import client_tables
from history.open.lines import json_objects, text_lines
from history.open.parquet import originals_in, parquet_tables
from history.open.reading import (
    Numbered,
    complete_operations,
    events_of,
    operations_of_events,
    peeked,
)
from history.open.rows import row_tables
from history.open.scalars import ORIGINALS_FILE, Numbering
from history.run_directory import RunDirectory
from history.schema import TABLES
from history.seal import seal
from history.writer import write_tables

__all__ = ["Import", "Imported", "imported"]


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
