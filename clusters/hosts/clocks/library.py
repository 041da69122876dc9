"""The library that a node preloads so that its wall clock can be wrong.

It comes built for x86-64. Elsewhere it is built from its source when it is first needed, which
takes a C compiler (`cc`). `python -m clusters.hosts.clocks.library` builds the one that comes with
the project anew.
"""

import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from clusters.cache import cache_dir
from history.failure import HarnessError

__all__ = ["build", "clock_library"]

_SOURCE: Final = Path(__file__).with_name("wrong_clock.c")
_FLAGS: Final = (
    *("-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-s"),
    # Nothing is linked: it serves any libc, and each of its calls is the process's own.
    *("-nostdlib", "-fno-stack-protector", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"),
)
_BUILD_TIMEOUT_S: Final = 60.0


def clock_library() -> Path:
    """Where the library for this machine lies.

    Raises HarnessError if none came for this kind of machine and it cannot be built.
    """
    came = _came_for(platform.machine())
    if came.exists():
        return came
    built = cache_dir() / "clocks" / came.name
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        build(built)
    return built


def build(target: Path) -> None:
    """Build the library with the machine's C compiler. Raises HarnessError if that fails."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise HarnessError(
            f"no clock library came for {platform.machine()}, and there is no C compiler (cc)"
        )
    draft = target.with_name(f".{target.name}.new")
    done = subprocess.run(
        [compiler, *_FLAGS, "-o", str(draft), str(_SOURCE)],
        capture_output=True,
        text=True,
        check=False,
        timeout=_BUILD_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise HarnessError(f"the clock library cannot be built: {done.stderr.strip()}")
    draft.rename(target)


def _came_for(machine: str) -> Path:
    return _SOURCE.with_name(f"wrong_clock_{machine}.so")


if __name__ == "__main__":
    build(_came_for(platform.machine()))
    sys.stdout.write(f"{_came_for(platform.machine())}\n")
