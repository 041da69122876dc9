"""A sealed run that lies elsewhere, brought to where its verdict is written.

The driver and the report read a run from a directory. So a run that is named by a URI is copied
into the results, its sealed history and what says how it came about, file by file; no file is held
in memory. There its verdict and its report are written: nothing is written back.

Tasks on this machine read the copy. Tasks on others do not see it and read the run itself, by its
URI (`checkers.runner.storage`), which takes a file system that pyarrow knows. To copy, what Spark
knows is enough: Hadoop's FileSystem in the driver's JVM has the configuration and the credentials
of Spark.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

import pyarrow as pa
from py4j.protocol import Py4JError
from pyarrow.fs import FileSelector, FileSystem, FileType
from pyspark.sql import SparkSession

from fencepost.checkers.runner.storage import file_system
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, read_manifest
from fencepost.history.run_directory import RunDirectory

_HISTORY: Final = "history/"
_PAPERS: Final = ("scenario.yaml", "play.yaml")
_MANIFEST: Final = "manifest.json"


def mirrored(
    uri: str, *, results: Path, session: Callable[[], SparkSession], elsewhere: bool
) -> RunDirectory:
    """Return the copy of the run at `uri`, in `results/<scenario>/<its name>`; make it if absent.

    `session`: asked for if pyarrow cannot reach the URI. `elsewhere`: tasks run on other machines.
    Raises HarnessError if the run cannot be reached, is not sealed, if tasks could not read it, or
    if another run is where the copy belongs.
    """
    try:
        store, readable = _store(uri, session)
        papers = _with_manifest(store, uri, results)
        files = store.files()
        _copy(store, files, papers)
    except (OSError, pa.ArrowException, Py4JError) as error:
        raise HarnessError(f"cannot read the run {uri}: {_first_line(error)}") from error
    if elsewhere and not readable:
        raise HarnessError(
            f"tasks on other machines cannot read {uri}: pyarrow has no file system for it there; "
            "use a local master, which reads a copy"
        )
    return RunDirectory(papers.root, source=uri.rstrip("/") if elsewhere else "")


class _Store(Protocol):
    """A directory tree somewhere."""

    def files(self) -> Mapping[str, int]:
        """Return the size in bytes, by path in the tree."""

    def fetch(self, name: str, path: Path) -> None:
        """Copy a file to `path`."""


@dataclass(frozen=True, slots=True)
class _ArrowStore:
    system: FileSystem
    root: str

    @classmethod
    def at(cls, uri: str) -> Self:
        system, path = file_system(uri)
        return cls(system, path.rstrip("/"))

    def files(self) -> Mapping[str, int]:
        found = self.system.get_file_info(FileSelector(self.root, recursive=True))
        return {
            one.path.removeprefix(f"{self.root}/"): one.size
            for one in found
            if one.type is FileType.File
        }

    def fetch(self, name: str, path: Path) -> None:
        with self.system.open_input_stream(f"{self.root}/{name}") as source, path.open("wb") as to:
            shutil.copyfileobj(source, to)


@dataclass(frozen=True, slots=True)
class _HadoopStore:
    jvm: Any
    system: Any
    root: Any

    @classmethod
    def at(cls, uri: str, spark: SparkSession) -> Self:
        jvm: Any = spark._jvm  # noqa: SLF001  # there is no public way to Hadoop's FileSystem
        root = jvm.org.apache.hadoop.fs.Path(uri)
        configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001
        return cls(jvm, root.getFileSystem(configuration), root)

    def files(self) -> Mapping[str, int]:
        start = f"{self.system.makeQualified(self.root).toUri().getPath().rstrip('/')}/"
        listed, found = self.system.listFiles(self.root, True), {}
        while listed.hasNext():
            status = listed.next()
            found[status.getPath().toUri().getPath().removeprefix(start)] = int(status.getLen())
        return found

    def fetch(self, name: str, path: Path) -> None:
        hadoop = self.jvm.org.apache.hadoop.fs.Path
        # Raw: without an extra checksum file, which the sealed digests make superfluous.
        self.system.copyToLocalFile(False, hadoop(self.root, name), hadoop(path.as_uri()), True)


def _store(uri: str, session: Callable[[], SparkSession]) -> tuple[_Store, bool]:
    """Return the store that reaches the URI, and whether tasks reach it, too."""
    try:
        store = _ArrowStore.at(uri)
    except (OSError, pa.ArrowException):  # Spark may know it; if not, its reason is the one to tell
        return _HadoopStore.at(uri, session()), False
    return store, True


def _with_manifest(store: _Store, uri: str, results: Path) -> RunDirectory:
    """Return the directory that the copy belongs in, with the manifest written to it."""
    results.mkdir(parents=True, exist_ok=True)
    draft = results / f".{_MANIFEST}.{_name_of(uri)}"
    try:
        store.fetch(_MANIFEST, draft)
        manifest = read_manifest(draft)
        run = RunDirectory((results / manifest.scenario / _name_of(uri)).resolve())
        _refuse_another(run, manifest, uri)
        run.root.mkdir(parents=True, exist_ok=True)
        draft.replace(run.manifest_path)
    finally:
        draft.unlink(missing_ok=True)
    return run


def _refuse_another(run: RunDirectory, manifest: Manifest, uri: str) -> None:
    if not run.manifest_path.exists():
        return
    there = read_manifest(run.manifest_path)
    if (there.run_id, there.digests) != (manifest.run_id, manifest.digests):
        raise HarnessError(f"{run.root} is not a copy of {uri}: pass other --results")


def _copy(store: _Store, files: Mapping[str, int], run: RunDirectory) -> None:
    """The history last and whole: a run that has one is complete."""
    for name in _PAPERS:
        if name in files:
            store.fetch(name, run.root / name)
    sealed = [name for name in files if name.startswith(_HISTORY)]
    if not sealed:
        raise HarnessError("it is not sealed: run `fencepost check` on its own machine first")
    if run.history.is_dir():
        return
    building = run.root / ".history.building"
    shutil.rmtree(building, ignore_errors=True)
    for name in sealed:
        path = building / name.removeprefix(_HISTORY)
        path.parent.mkdir(parents=True, exist_ok=True)
        store.fetch(name, path)
    building.replace(run.history)


def _name_of(uri: str) -> str:
    return uri.rstrip("/").rpartition("/")[2]


def _first_line(error: BaseException) -> str:
    """Return the first line: a Java exception goes on with stack traces."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(("An error occurred", "at "))]
    return (told or lines or [type(error).__name__])[0]
