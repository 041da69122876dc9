"""The compiled simulator makes the very worlds that plain Python makes."""

import json
import os
import subprocess
import sys
import zipfile
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import pytest

from fencepost.native.build import compiled_modules, why_not

_ROOT = Path(__file__).parents[2]
_WORLDS = Path(__file__).parent / "worlds.py"
_BUILD_S = 1800
"""Two minutes of a core, on a machine that may have other things to do."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a compiled wheel installs, in a directory of its own."""
    if reason := why_not():
        pytest.skip(reason)
    directory = tmp_path_factory.mktemp("compiled")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    environment = os.environ | {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"}
    subprocess.run(command, cwd=_ROOT, env=environment, check=True, timeout=_BUILD_S)
    [wheel] = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as content:
        content.extractall(directory / "installed")
    return directory / "installed"


@pytest.mark.slow
def test_compiled_worlds_are_those_of_plain_python(installed: Path) -> None:
    plain, compiled = _worlds(_ROOT), _worlds(installed)
    assert (plain["compiled"], compiled["compiled"]) == (False, True)
    assert compiled["worlds"] == plain["worlds"]
    # It compared something: enough worlds, with and without findings, none of which crashed.
    assert len(plain["worlds"]) >= 35
    found = [bool(findings) for *_, findings in plain["worlds"].values()]
    assert any(found)
    assert not all(found)
    assert not any(crash for *_, crash, _ in plain["worlds"].values())


@pytest.mark.slow
def test_every_module_that_is_to_be_compiled_is(installed: Path) -> None:
    for name in compiled_modules(_ROOT):
        assert list(installed.glob(f"{name.removesuffix('.py')}.*.so")), name


def test_nothing_compiled_stands_beside_a_source() -> None:
    packages = ("clusters", "harness", "history", "nemesis", "workloads")
    suffix = EXTENSION_SUFFIXES[0]
    assert not [path for package in packages for path in (_ROOT / package).rglob(f"*{suffix}")]


def test_a_compiled_wheel_is_refused_in_one_line_where_there_is_no_compiler(tmp_path: Path) -> None:
    environment = os.environ | {
        "HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1",
        "PATH": str(tmp_path),
        "FENCEPOST_CACHE": str(tmp_path / "cache"),
    }
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(
        command,
        cwd=_ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    [line] = (done.stdout + done.stderr).splitlines()
    assert "the simulator cannot be compiled here: there is no C compiler" in line


def _worlds(first: Path) -> dict[str, Any]:
    """The results of a process that looks for modules there first."""
    done = subprocess.run(
        [sys.executable, str(_WORLDS)],
        env=os.environ | {"PYTHONPATH": str(first)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_no_compiled_module_has_a_protocol_that_isinstance_asks() -> None:
    """A native class is no Protocol any more, and the build fails when it is first imported."""
    asked = [
        module
        for module in compiled_modules(_ROOT)
        if "@runtime_checkable" in (_ROOT / module).read_text(encoding="utf-8")
    ]
    assert not asked, "import a port that stands elsewhere, or add the module to _PLAIN"
