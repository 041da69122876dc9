"""Programs on this Python for nodes that do not see it: in containers, and on other machines.

Two directories of the cache hold all that such a node reads. One is the interpreter with its
standard library, and with the shared libraries of both, the C library and its loader included. So
neither a container's image nor another machine needs anything but a kernel and this machine's
processor. The other is the program: the packages that it imports. It is made anew when one of them
has changed; the interpreter is not.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from importlib.util import cache_from_source, find_spec
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.clusters.provision.fingerprints import listing_digest
from fencepost.history.failure import HarnessError
from fencepost.history.program import IMPORT_ROOT

_LEFT_OUT: Final = re.compile(
    r"test|tests|idlelib|lib2to3|tkinter|turtledemo|ensurepip|(site|dist)-packages|config-.*"
    r"|_tkinter.*|_?x?x?test.*\.so|__pycache__"
)
"""The parts of a standard library that no server imports."""
_LINKED: Final = re.compile(r"(?:=> )?(/\S+) \(0x[0-9a-f]+\)")
"""A library in the output of `ldd`, or the loader."""
_LIBRARIES: Final = "lib"
_EXECUTABLE: Final = "bin/python"
_LDD_TIMEOUT_S: Final = 60.0

Files = Mapping[str, Path]
"""Files of this machine, by their names in a directory of the cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PortableProgram:
    """A program, and the Python that runs it: two directories of this machine."""

    python: Path
    program: Path

    @property
    def directories(self) -> tuple[Path, ...]:
        """All that its process reads outside of its own directory."""
        return (self.python, self.program)

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs it; arguments may follow.

        The loader is called by its path, so that it takes no library of the place where it runs.
        """
        (loader,) = (self.python / _LIBRARIES).glob("ld*")
        libraries = ":".join(str(one / _LIBRARIES) for one in self.directories)
        executable = str(self.python / _EXECUTABLE)
        isolated = ("-I", "-S", "-B")
        program = str(self.program)
        return (str(loader), "--library-path", libraries, executable, *isolated, program)


def portable_program(
    module: str,
    *,
    packages: Sequence[str],
    distributions: Sequence[str],
    progress: Progress,
) -> PortableProgram:
    """Return the program that calls `main` of a module; what the cache lacks of it is made.

    `packages`: ours that it imports, by name; `distributions`: those of others, as installed.
    Raises HarnessError if this Python cannot be copied.
    """
    main = f"import sys\nfrom {module} import main\nsys.exit(main())\n"

    def build(draft: Path, files: Files) -> None:
        (draft / "__main__.py").write_text(main)
        _copy(draft, files)

    return PortableProgram(
        python=_made("python", _python_files(), build=_copy, progress=progress),
        program=_made(
            module, _program_files(packages, distributions), build=build, progress=progress
        ),
    )


def _made(
    name: str, files: Files, *, build: Callable[[Path, Files], None], progress: Progress
) -> Path:
    return kept(
        cache_dir() / "portable" / f"{name}-{listing_digest(files)}",
        read=lambda entry: entry if entry.is_dir() else None,
        build=lambda draft: build(draft, files),
        doing=f"copying {name} for nodes that do not see this machine's",
        progress=progress,
    )


def _python_files() -> Files:
    library = Path(sysconfig.get_path("stdlib"))
    inside = {f"{_LIBRARIES}/{library.name}/{name}": path for name, path in _inside(library)}
    return {_EXECUTABLE: Path(sys.executable).resolve()} | inside


def _program_files(packages: Sequence[str], distributions: Sequence[str]) -> Files:
    found = {"fencepost/__init__.py": IMPORT_ROOT / "fencepost/__init__.py"}
    for package in packages:
        spec = find_spec(package)
        assert spec is not None, package
        for place in spec.submodule_search_locations or ():
            found |= {
                f"{package.replace('.', '/')}/{name}": path for name, path in _inside(Path(place))
            }
    for one in distributions:
        for path in distribution(one).files or ():
            if ".." not in path.parts and "__pycache__" not in path.parts:
                found[str(path)] = Path(str(path.locate()))
    return found


def _inside(directory: Path) -> Iterator[tuple[str, Path]]:
    """Yield the files of a directory that are copied, with their names in there."""
    for root, directories, names in os.walk(directory, followlinks=True):
        directories[:] = sorted(name for name in directories if not _LEFT_OUT.fullmatch(name))
        for path in (Path(root, name) for name in sorted(names)):
            # A compiled module of ours needs libraries beside it; its source does as well.
            is_twice = path.suffix == ".so" and _source_of(path).exists()
            if path.is_file() and not _LEFT_OUT.fullmatch(path.name) and not is_twice:
                yield str(path.relative_to(directory)), path


def _source_of(library: Path) -> Path:
    return library.with_name(library.name.partition(".")[0] + ".py")


def _libraries(files: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that these files need, and the loader."""
    binaries = [str(path) for path in files if path.suffix == ".so" or path.parent.name == "bin"]
    try:
        said = subprocess.run(
            ["ldd", *binaries], capture_output=True, text=True, check=False, timeout=_LDD_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HarnessError(f"cannot see which libraries this Python needs: {error}") from error
    return {Path(found[1]) for found in _LINKED.finditer(said.stdout)}


def _copy(draft: Path, files: Files) -> None:
    """Copy them, the libraries that they need, and what they were compiled to.

    Where they are read, nothing can be written.
    """
    import compileall  # noqa: PLC0415  # most runs copy nothing

    for name, path in files.items():
        target = draft / name
        target.parent.mkdir(parents=True, exist_ok=True)
        # With its time, by which a compiled module knows its source.
        shutil.copy2(path, target)
        if path.suffix == ".py" and (compiled := Path(cache_from_source(path))).is_file():
            cached = Path(cache_from_source(target))
            cached.parent.mkdir(exist_ok=True)
            shutil.copy2(compiled, cached)
    for library in _libraries(files.values()):
        (draft / _LIBRARIES).mkdir(exist_ok=True)
        shutil.copy2(library, draft / _LIBRARIES / library.name)
    compileall.compile_dir(draft, quiet=2)
