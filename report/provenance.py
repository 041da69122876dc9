"""The inputs of the run and the files that it left: versions, machine, files, digests."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from history.manifest import Manifest
from history.run_directory import RunDirectory
from report.head import HeadFact
from report.notation import length
from report.reading import Reading

__all__ = ["FileRow", "Folder", "Provenance", "provenance_of"]

_FILES_MAX: Final = 1000
"""The bound on listed files; a run of hundreds of nodes is better searched with a shell."""

_DATA: Final = "disk"
"""The directory of a node's own files: Kafka's, thousands of them, and no evidence of ours."""

# First what people open first.
_ORDER: Final = (".", "history", "anomalies", "nodes", "clients")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """One file of the run directory."""

    name: str
    link: str
    """The link to it, relative to the page."""
    byte_count: int | None
    """The size; None: the manifest has its digest, but the file is not there."""
    digest: str
    """The SHA-256 from the manifest, or empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """The files of one directory."""

    name: str
    files: tuple[FileRow, ...]

    @property
    def of_logs(self) -> bool:
        """True if these are the logs of a node or of the clients."""
        return self.name.split("/", 1)[0] in ("nodes", "clients")


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """All of it."""

    versions: tuple[HeadFact, ...]
    machine: tuple[HeadFact, ...]
    promises: tuple[HeadFact, ...]
    folders: tuple[Folder, ...]
    complete: bool
    """False if there are more than `_FILES_MAX` files."""


def provenance_of(run: RunDirectory, reading: Reading) -> Provenance:
    """Look at the run directory as it is now."""
    manifest = reading.manifest
    digests = manifest.digests if manifest else {}
    found = _sizes(run.root, leave_out=run.report_path)
    missing = sorted(name for name in digests if not (run.root / name).exists())
    return Provenance(
        versions=tuple(_versions(manifest)) if manifest else (),
        machine=_facts(manifest.machine) if manifest else (),
        promises=tuple(_promises(manifest)) if manifest else (),
        folders=_folders(
            {**dict(list(found.items())[:_FILES_MAX]), **{Path(name): None for name in missing}},
            digests=digests,
        ),
        complete=len(found) <= _FILES_MAX,
    )


def _versions(manifest: Manifest) -> Iterator[HeadFact]:
    yield HeadFact(label="fencepost", value=manifest.fencepost_version)
    yield from _facts(manifest.versions)
    for change in manifest.changes:
        yield HeadFact(
            label=f"{change.subject}, from {length(change.time_ns)}", value=change.version
        )


def _promises(manifest: Manifest) -> Iterator[HeadFact]:
    promises = manifest.promises
    yield HeadFact(label="acks", value=promises.acks)
    yield HeadFact(label="idempotence", value="on" if promises.idempotent else "off")
    yield HeadFact(label="consumers", value=promises.consume)
    yield HeadFact(label="keys", value=", ".join(manifest.keys) or "none")


def _facts(mapping: Mapping[str, str]) -> tuple[HeadFact, ...]:
    return tuple(HeadFact(label=label, value=str(value)) for label, value in mapping.items())


def _sizes(root: Path, *, leave_out: Path) -> dict[Path, int | None]:
    """Return sizes by relative path, a few more than are listed at most. Links are not followed."""
    found: dict[Path, int | None] = {}
    for directory, below, names in os.walk(root):
        below[:] = sorted(name for name in below if name != _DATA)
        for path in (Path(directory, name) for name in sorted(names)):
            # A node that still runs may rotate its logs meanwhile.
            if path != leave_out and path.is_file():
                found[path.relative_to(root)] = path.stat().st_size
        if len(found) > _FILES_MAX:
            break
    return found


def _folders(sizes: Mapping[Path, int | None], *, digests: Mapping[str, str]) -> tuple[Folder, ...]:
    by_folder: dict[str, list[FileRow]] = {}
    for path, byte_count in sizes.items():
        row = FileRow(
            name=path.name,
            link="./" + quote(os.fsencode(path)),
            byte_count=byte_count,
            digest=digests.get(str(path), ""),
        )
        by_folder.setdefault(str(path.parent), []).append(row)
    return tuple(
        Folder(name=name, files=tuple(sorted(by_folder[name], key=lambda row: row.name)))
        for name in sorted(by_folder, key=_place)
    )


def _place(folder: str) -> tuple[int, str]:
    top = folder.split("/", 1)[0]
    return (_ORDER.index(top) if top in _ORDER else len(_ORDER), folder)
