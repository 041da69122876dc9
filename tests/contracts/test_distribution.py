"""What a user gets who installs the wheel or the sdist, away from the checkout."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one wheel and one sdist, the wheel built from the sdist."""
    directory = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(directory), str(ROOT)],
        check=True,
        capture_output=True,
        text=True,
    )
    return directory


@pytest.fixture(scope="module")
def site(built: Path) -> Path:
    """Where the wheel is installed."""
    (wheel,) = built.glob("*.whl")
    directory = built / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(directory), str(wheel)], check=True)
    return directory


def fencepost(
    *arguments: str, site: Path, directory: Path, beside: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run the installed command there; it first prints where its packages are.

    `beside`: a directory of other packages, on the path before it.
    """
    # `-P -c` and this path: the installed packages are found, those of the checkout are not.
    where = "import fencepost; print(fencepost.__file__)"
    path = os.pathsep.join(map(str, filter(None, (beside, site))))
    program = f"{where}; from fencepost.harness.cli.main import main; main({[*arguments]})"
    return subprocess.run(
        [sys.executable, "-P", "-c", program],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_wheel_runs_outside_the_checkout_with_its_scenarios(site: Path, tmp_path: Path) -> None:
    ended = fencepost("scenarios", "smoke", site=site, directory=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(site))
    assert "name: smoke" in ended.stdout


@pytest.mark.spark
def test_other_packages_of_such_names_are_not_taken_for_its_own(site: Path, tmp_path: Path) -> None:
    """Neither what is installed beside it, nor what lies in the working directory."""
    beside = tmp_path / "beside"
    for package in ("checkers", "clusters", "harness", "history", "nemesis", "report", "workloads"):
        for folder in (beside, tmp_path):
            (folder / package).mkdir(parents=True)
            (folder / package / "__init__.py").write_text("raise ImportError('another one')\n")
    words = ("run", "smoke", "--cluster", "simulated", "--seed", "1", "--time-limit", "10s")
    ended = fencepost(*words, "--no-require", site=site, directory=tmp_path, beside=beside)
    assert ended.returncode == 0, ended.stderr
    again = fencepost("check", "latest", site=site, directory=tmp_path, beside=beside)
    assert again.returncode == 0, again.stderr
    assert "VALID" in again.stdout


def test_the_wheel_brings_every_data_file_and_no_test(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    tracked = {
        f"fencepost/{path.relative_to(ROOT).as_posix()}"
        for package in ("checkers", "clusters", "harness", "history", "report", "scenarios")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and path.suffix in {".toml", ".yaml", ".j2", ".css", ".js", ".py"}
    }
    assert tracked <= names
    assert {name.split("/")[0] for name in names} == {"fencepost", "fencepost-0.1.0.dist-info"}
    assert not [name for name in names if name.startswith(("fencepost/tests", "fencepost/results"))]


def test_the_sdist_has_what_is_needed_to_build_and_test(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    wanted = {"Makefile", "README.md", "LICENSE", "pyproject.toml", "tests/conftest.py"}
    assert wanted <= names
