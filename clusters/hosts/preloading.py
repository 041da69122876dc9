"""Libraries of our own that a node's processes preload: where each lies, and how it is built.

A library comes built for x86-64, beside its source of C. Elsewhere it is built when it is first
needed, which takes a C compiler (`cc`).
"""

import platform
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.cache import cache_dir
from fencepost.history.failure import HarnessError

_FLAGS: Final = (
    *("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-s"),
    # Nothing is linked: it serves any libc, and each of its calls is the process's own.
    *("-nostdlib", "-fno-stack-protector", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"),
)
_BUILD_TIMEOUT_S: Final = 60.0
_PRELOAD: Final = "LD_PRELOAD"


def library_of(source: Path) -> Path:
    """Return the path of this source's library, for this machine.

    Raises HarnessError if none came for this kind of machine and it cannot be built.
    """
    came = came_with(source)
    if came.exists():
        return came
    built = cache_dir() / source.parent.name / came.name
    if not built.exists() or built.stat().st_mtime < source.stat().st_mtime:
        built.parent.mkdir(parents=True, exist_ok=True)
        build(source, built)
    return built


def came_with(source: Path) -> Path:
    """Return the path of the library that comes with the project for this kind of machine."""
    return source.with_name(f"{source.stem}_{platform.machine()}.so")


def build(source: Path, target: Path) -> None:
    """Build it with the machine's C compiler. Raises HarnessError if that fails."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise HarnessError(
            f"{came_with(source).name} did not come with Fencepost for {platform.machine()}, and "
            "there is no C compiler (cc)"
        )
    draft = target.with_name(f".{target.name}.new")
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(draft), str(source)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise HarnessError(f"{source.name} cannot be built: {done.stderr.strip()}")
    draft.rename(target)


def preloading(env: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """The one environment with the other added: what either preloads is preloaded."""
    libraries = [one[_PRELOAD] for one in (env, more) if one.get(_PRELOAD)]
    return {**env, **more} | ({_PRELOAD: ":".join(libraries)} if libraries else {})
