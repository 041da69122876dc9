"""A node imports what it runs and no more: several start at once, and imports are most of that."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import sys
from fencepost.clusters.reference.shell.process import _Process
from fencepost.clusters.reference.shell.properties import read_properties
from pathlib import Path
_Process(read_properties(Path(sys.argv[1])))
print(*(name for name in sys.modules if name.startswith("fencepost.clusters.reference")))
"""
_NODES = "fencepost.clusters.reference.nodes"


@pytest.mark.parametrize(
    ("role", "needed", "others"),
    [
        (
            "controller",
            f"{_NODES}.quorum.voter",
            (f"{_NODES}.replicas.replicas", f"{_NODES}.broker"),
        ),
        ("broker", f"{_NODES}.replicas.replicas", (f"{_NODES}.control", f"{_NODES}.controller")),
    ],
)
def test_a_node_imports_nothing_of_another_role_or_generation(
    tmp_path: Path, role: str, needed: str, others: tuple[str, ...]
) -> None:
    config = tmp_path / "node.properties"
    config.write_text(
        f"process.roles={role}\n{role}.id=1\ncontroller.connect=1@127.0.0.1:1\n"
        "controller.listener.names=CONTROLLER\n"
        f"listeners={'CONTROLLER' if role == 'controller' else 'PLAINTEXT'}://127.0.0.1:1\n"
        f"log.dirs={tmp_path / 'data'}\n"
    )
    tool = (sys.executable, "-m", "fencepost.clusters.reference.shell.storage_tool")
    cluster = ("--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk")
    subprocess.run([*tool, "format", "--config", str(config), *cluster], check=True)
    command = [sys.executable, "-c", PROGRAM, str(config)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    imported = ended.stdout.split()
    assert needed in imported
    zk = "fencepost.clusters.reference"
    unneeded = (*others, f"{zk}.zk.broker", f"{zk}.codec.zk_apis")
    assert [name for name in imported if name.startswith(unneeded)] == []
