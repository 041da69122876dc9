"""Compile the simulator with mypyc: a copy of its modules, rewritten, as C, as a shared library.

The sources of the project stay as they are, and no library is ever put next to them: it would win
over a module that was edited since. The result is kept in the cache, by a digest of all that it was
made from.
"""

import hashlib
import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import Progress, cache_dir, kept
from fencepost.history.failure import HarnessError
from fencepost.native.rewriting import rewritten

_PACKAGES: Final = ("clusters", "harness", "history", "nemesis", "workloads")
"""The packages that mypy reads, since modules to be compiled import them."""
_COMPILED: Final = (
    "clusters/data_tree/*.py",
    "clusters/node_port/*.py",
    "clusters/reference/specs.py",
    "clusters/reference/nodes/*.py",
    "clusters/reference/nodes/*/*.py",
    "clusters/reference/oracle/*.py",
    "clusters/reference/simulated/*.py",
    "clusters/reference/zk/*.py",
    "clusters/reference/zk/control/*.py",
    "clusters/reference_zookeeper/simulated/*.py",
    "clusters/simulation/*.py",
    "clusters/simulation/zookeeper/*.py",
    "harness/interpreter/interpreter.py",
    "harness/interpreter/network.py",
    "harness/interpreter/observer.py",
    "harness/interpreter/performer.py",
    "harness/trials/directing.py",
    "harness/trials/schedule.py",
    "harness/trials/trial.py",
    "harness/virtual/*.py",
    "nemesis/disks.py",
    "nemesis/mix.py",
    "clusters/kafka_conditions.py",
    "clusters/observation.py",
    "nemesis/simulated/parties.py",
    "nemesis/simulated/wire.py",
    "nemesis/wire/rulebook.py",
    "workloads/simulated/*.py",
)
"""The modules in which nine tenths of a trial's time are spent."""
_PLAIN: Final = (
    # Modules that ask a world from outside, a few times a trial.
    "clusters/reference/simulated/administration.py",
    "clusters/reference/simulated/simulated_operator.py",
    "clusters/reference/simulated/deferred.py",
    "clusters/reference/simulated/disk_files.py",
    "clusters/reference/simulated/witness.py",
    "clusters/reference_zookeeper/simulated/driver.py",
    "clusters/reference_zookeeper/simulated/log_files.py",
    # It borrows a method of another class, which a native class does not bind.
    "clusters/reference/simulated/driver.py",
    # A Protocol that isinstance asks, and classes that inherit from Python's own.
    "clusters/node_port/effects.py",
    # Its objects are known by weak references.
    "clusters/node_port/segments.py",
    "clusters/simulation/trace.py",
    "workloads/simulated/payload.py",
    # Its methods are made anew for every switch.
    "clusters/reference/nodes/rules.py",
    "clusters/reference/zk/rules.py",
)
_OPTIMIZATION: Final = "1"
"""The C compiler's. 0 would lose all but a tenth of the gain, and be no quicker to build."""
_MYPY: Final = (
    "--config-file=",
    "--ignore-missing-imports",
    "--no-incremental",
    # `replace` and `fields` of what is no dataclass any more; `make check` has seen the originals.
    "--disable-error-code=type-var",
    "--disable-error-code=arg-type",
)
_TIMEOUT_S: Final = 3600.0
_BUILDING: Final = """
import sys
from mypyc.build import mypycify
from setuptools import Distribution

extensions = mypycify(
    sys.argv[2:], opt_level=sys.argv[1], debug_level="0", group_name="fencepost", multi_file=True
)
distribution = Distribution({"name": "fencepost", "ext_modules": extensions})
command = distribution.get_command_obj("build_ext")
command.inplace = True
command.ensure_finalized()
command.run()
"""


def why_not() -> str:
    """Return what is missing for a compiled build; empty: nothing."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler ({compiler}); on Debian: apt-get install gcc"
    if not (Path(sysconfig.get_path("include")) / "Python.h").exists():
        return "Python's headers are missing; on Debian: apt-get install python3-dev"
    if importlib.util.find_spec("mypyc") is None:
        return "mypyc is missing; pip install 'mypy>=1.13'"
    return ""


def compiled_modules(root: Path) -> list[str]:
    """Return the modules that are compiled, as paths below the root of the checkout."""
    ours = root / "fencepost"
    found = {
        path.relative_to(ours).as_posix() for pattern in _COMPILED for path in ours.glob(pattern)
    }
    left = (one for one in found - {*_PLAIN} if not one.endswith("__init__.py"))
    return sorted(f"fencepost/{one}" for one in left)


def compiled_library(root: Path, *, progress: Progress) -> Path:
    """Return a directory with libraries and rewritten modules, laid out for installation.

    Raises HarnessError if it cannot be built here.
    """
    if reason := why_not():
        raise HarnessError(f"the simulator cannot be compiled here: {reason}")
    entry = cache_dir() / "compiled" / _digest(root)
    return kept(
        entry,
        read=lambda path: path if any(path.glob("*.so")) else None,
        build=lambda path: _build(root, path),
        doing="compiling the simulator (two minutes of a core)",
        progress=progress,
    )


def _build(root: Path, entry: Path) -> None:
    """Put everything that is to be installed into an empty directory."""
    modules = compiled_modules(root)
    ignore = shutil.ignore_patterns("__pycache__")
    for package in _PACKAGES:
        shutil.copytree(root / package, entry / "fencepost" / package, ignore=ignore)
    # Without its content, which would have mypy read all that the interface for Python has.
    (entry / "fencepost/__init__.py").touch()
    texts = {_dotted(name): (entry / name).read_text() for name in modules}
    for name in modules:
        (entry / name).write_text(rewritten(texts[_dotted(name)], texts))
    _compile(entry, modules)
    shutil.rmtree(entry / "build")
    _keep(entry, {*modules})


def _dotted(name: str) -> str:
    return name.removesuffix(".py").replace("/", ".")


def _compile(directory: Path, modules: list[str]) -> None:
    """Have mypyc put a library next to each module; its own process, since it takes a gigabyte."""
    command = [sys.executable, "-c", _BUILDING, _OPTIMIZATION, *_MYPY, *modules]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if "error" in line]
        last = said[0] if said else (done.stderr.strip() or "no word").splitlines()[-1]
        raise HarnessError(f"the simulator could not be compiled: {last}")


def _keep(directory: Path, modules: set[str]) -> None:
    """Remove what is not to be installed: what is not compiled stands in the checkout, too."""
    for path in sorted(directory.rglob("*"), reverse=True):
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.suffix != ".so" and path.relative_to(directory).as_posix() not in modules:
            path.unlink()


def _digest(root: Path) -> str:
    """Return the digest of a build's inputs: modules and what they import, tools, this Python."""
    found = hashlib.sha256()
    words = (sys.version, sysconfig.get_platform(), importlib.metadata.version("mypy"), *_MYPY)
    found.update("\n".join((*words, _OPTIMIZATION, _BUILDING, *_COMPILED, *_PLAIN)).encode())
    for path in _sources(root):
        found.update(path.relative_to(root).as_posix().encode())
        found.update(path.read_bytes())
    return found.hexdigest()[:32]


def _sources(root: Path) -> Iterator[Path]:
    for package in ("native", *_PACKAGES):
        yield from sorted((root / package).rglob("*.py"))
