"""A program on a copy of this Python runs where there is nothing else."""

import os
import subprocess
from pathlib import Path

import pytest

from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.portable import PortableProgram, portable_program

SAYS = """
import sys

def main() -> int:
    import asyncio, crc32c, hashlib, ssl
    print(crc32c.crc32c(b"123456789"), *sys.argv[1:])
    return 3
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def portable(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PortableProgram:
    package = tmp_path / "spoken_by_a_test"
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "saying.py").write_text(SAYS)
    (package / "saying.cpython-311-other-linux-gnu.so").write_bytes(b"compiled")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(CACHE_VARIABLE, str(cache))
    return portable_program(
        "spoken_by_a_test.saying",
        packages=("spoken_by_a_test",),
        distributions=("crc32c",),
        progress=print,
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a root directory of its own needs root")
def test_it_needs_no_file_of_the_place_where_it_runs(
    portable: PortableProgram, cache: Path
) -> None:
    inside = [word.replace(str(cache), "") for word in portable.command]
    ended = subprocess.run(
        ["chroot", str(cache), *inside, "a", "b"], capture_output=True, text=True, check=False
    )
    assert (ended.stdout, ended.returncode) == ("3808858755 a b\n", 3), ended.stderr


def test_it_is_made_once_and_the_program_anew_when_a_source_has_changed(
    portable: PortableProgram, tmp_path: Path
) -> None:
    words = {"packages": ("spoken_by_a_test",), "distributions": ("crc32c",)}
    said: list[str] = []
    module = "spoken_by_a_test.saying"
    assert portable_program(module, **words, progress=said.append) == portable
    assert said == []
    (tmp_path / "spoken_by_a_test" / "saying.py").write_text("def main() -> int:\n    return 4\n")
    changed = portable_program(module, **words, progress=said.append)
    assert changed.python == portable.python
    assert len(said) == 1
    assert subprocess.run(changed.command, check=False).returncode == 4


def test_what_it_reads_is_compiled_and_no_library_stands_for_a_source(
    portable: PortableProgram,
) -> None:
    package = portable.program / "spoken_by_a_test"
    assert not list(package.glob("*.so"))
    assert [path.name for path in package.glob("__pycache__/saying*")]
    assert list((portable.python / "lib").glob("*/__pycache__/ast.*.pyc"))
