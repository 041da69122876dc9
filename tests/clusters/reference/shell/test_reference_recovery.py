"""Recovery after a crash: the logs of partitions are read while the node goes on. K07."""

import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from wire_samples import client_batch, placed

from fencepost.clusters.node_port.storage import CLEAN_STOP, HIGH_WATERMARKS
from fencepost.clusters.reference.shell.disk import DataDirectories
from fencepost.clusters.reference.shell.formatting import format_directory
from fencepost.clusters.reference.shell.small_files import (
    CLEAN_STOP_NAME,
    PARTITION_NAME,
    topic_id_text,
)

_KEYS = ((77, 0), (77, 1))
_RECORD = placed(client_batch(b"a" * 8), base_offset=0, leader_epoch=3, count=1)
_PARTITIONS = 40
_BATCHES = 100_000
_END_S_MAX = 30


def opened(data: Path) -> DataDirectories:
    return DataDirectories((data,), metadata=None, voters=(1001,))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    format_directory(path, node_id=1, cluster_id="c")
    disk = opened(path)
    disk.contents(incarnation_id=9)
    for key in _KEYS:
        disk.create(key, "t")
        disk.append(key, _RECORD)
    disk.write(HIGH_WATERMARKS, tuple((key, 1) for key in _KEYS))
    disk.close()
    return path


def test_k07_after_a_crash_a_node_starts_before_its_logs_are_read(data: Path) -> None:
    disk = opened(data)
    contents = disk.contents(incarnation_id=9)
    assert (contents.logs, contents.topics) == ({}, dict.fromkeys(_KEYS, "t"))
    assert HIGH_WATERMARKS not in contents.files
    recovered = disk.recovered(disk.recovery(lambda: False)())
    assert recovered.logs == {key: [_RECORD] for key in _KEYS}
    assert dict(recovered.files[HIGH_WATERMARKS]) == dict.fromkeys(_KEYS, 1)
    disk.append(_KEYS[0], _RECORD)
    disk.close()


def test_after_a_clean_stop_the_logs_are_there_at_once(data: Path) -> None:
    before = opened(data)
    before.write(CLEAN_STOP, True)
    disk = opened(data)
    assert disk.contents(incarnation_id=9).logs == {key: [_RECORD] for key in _KEYS}
    disk.close()


def test_recovery_ends_between_two_logs_once_the_node_is_over(data: Path) -> None:
    disk = opened(data)
    disk.contents(incarnation_id=9)
    answers = iter((False, True))
    recovered = disk.recovered(disk.recovery(lambda: next(answers))())
    assert list(recovered.logs) == list(_KEYS[:1])
    disk.close()


def _fill(data: Path) -> None:
    """Write logs that take tens of seconds to recover: all are one file."""
    batch = client_batch(b"a" * 8)[8:]
    first = data / "t-2" / f"{0:020}.log"
    for number in range(2, 2 + _PARTITIONS):
        directory = data / f"t-{number}"
        directory.mkdir()
        (directory / PARTITION_NAME).write_text(topic_id_text(77))
        if number == 2:
            first.write_bytes(b"".join(struct.pack(">q", one) + batch for one in range(_BATCHES)))
        else:
            os.link(first, directory / first.name)


@contextmanager
def broker(data: Path) -> Iterator["subprocess.Popen[str]"]:
    """The process of a broker whose controller does not exist."""
    stated = {
        "process.roles": "broker",
        "broker.id": "1",
        "controller.connect": "1001@127.0.0.1:1",
        "controller.listener.names": "CONTROLLER",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(data),
    }
    path = data.parent / "server.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in stated.items()))
    command = [sys.executable, "-m", "fencepost.clusters.reference", "--config", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_k07_a_process_that_recovers_shuts_down_on_control_c_and_recovers_again(
    data: Path,
) -> None:
    _fill(data)
    for _ in range(2):
        with broker(data) as process:
            assert process.stdout is not None
            for line in process.stdout:
                if "RECOVERING_FROM_UNCLEAN_SHUTDOWN" in line:
                    break
            process.send_signal(signal.SIGINT)
            rest = process.stdout.read()
            assert process.wait(timeout=_END_S_MAX) == 0
        assert "NOT_RUNNING" in rest
        assert "REGISTERING" not in rest
        assert not (data / CLEAN_STOP_NAME).exists()
