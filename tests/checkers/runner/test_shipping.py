import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

import fencepost.checkers.runner.session
from fencepost.checkers.runner.session import PACKAGES, code_archive

pytestmark = pytest.mark.slow

_ELSEWHERE = """
import sys
sys.path.insert(0, sys.argv[1])
import fencepost.checkers.check, fencepost.checkers.catalogue
from fencepost.history.errors import registry
assert registry()
print(fencepost.checkers.check.__file__)
"""


def test_the_same_code_has_the_same_archive_byte_by_byte(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    assert code_archive(one).name == code_archive(two).name
    assert code_archive(one).read_bytes() == code_archive(two).read_bytes()


def test_other_code_has_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "__init__.py").touch()
    (source / "kernel.py").write_text("LIMIT = 1\n")
    monkeypatch.setattr(fencepost.checkers.runner.session, "files", lambda _: source)
    before = code_archive(tmp_path)
    (source / "kernel.py").write_text("LIMIT = 2\n")
    assert code_archive(tmp_path).name != before.name


def test_every_module_and_data_file_is_in_the_archive_and_no_cache_is(tmp_path: Path) -> None:
    root = Path(fencepost.checkers.runner.session.__file__).parents[2]
    stored = set(ZipFile(code_archive(tmp_path)).namelist())
    for package in PACKAGES:
        for path in (root / package).rglob("*"):
            name = str(path.relative_to(root))
            assert (name in stored) == (path.is_file() and "__pycache__" not in name)


def test_a_python_that_knows_no_checkout_runs_from_the_archive(tmp_path: Path) -> None:
    archive = code_archive(tmp_path)
    # Without `site`, no editable install is seen: what is left is what any executor has.
    ended = subprocess.run(
        [sys.executable, "-S", "-c", _ELSEWHERE, str(archive)],
        cwd=tmp_path,
        env={"PYTHONPATH": sysconfig.get_path("purelib")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"{archive}/fencepost/checkers/")
