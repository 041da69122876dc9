"""A run whose disk is full says so in its manifest and on its page: space was set aside for it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]

# A run asks for a gigabyte before it begins; this one begins with less.
RUN = """
import sys
import fencepost.harness.run.plan
from fencepost.harness.cli.main import main
fencepost.harness.run.plan._FREE_BYTES_MIN = 1 << 10
sys.argv = ["fencepost", "run", "smoke", "--cluster", "simulated", "--alongside", *sys.argv[1:]]
try:
    sys.exit(main())
finally:  # the file system ends with this mount namespace: what is left is told here
    from pathlib import Path
    for path in Path(sys.argv[-1]).glob("smoke/2*/manifest.json"):
        print(path.read_text())
        print(sorted(one.name for one in path.parent.iterdir()))
"""


def ended(directory: Path, *, size: str) -> subprocess.CompletedProcess[str]:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("mounting a small disk needs root and unshare")
    mount = f'mount -t tmpfs -o size={size} tmpfs "{directory}" && exec "$@"'
    wrapper = ["unshare", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*wrapper, "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("this machine forbids mounting")
    return subprocess.run(
        [*wrapper, sys.executable, "-c", RUN, "--results", str(directory)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def test_it_fails_by_name_with_its_manifest_and_page_written(tmp_path: Path) -> None:
    run = ended(tmp_path, size="8m")
    assert run.returncode == 255
    assert "No space left on device" in run.stderr
    assert f"(see {tmp_path / 'smoke'}" in run.stderr
    assert '"state": "failed"' in run.stdout
    assert "'report.html'" in run.stdout
    assert ".reserve" not in run.stdout


def test_one_that_cannot_begin_leaves_nothing(tmp_path: Path) -> None:
    run = ended(tmp_path, size="4k")
    assert (run.returncode, run.stdout) == (255, "")
    assert str(tmp_path) in run.stderr
    assert "make room" in run.stderr
