"""An archive of classes serves the start it was made for, and does no harm to another."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka import preparation as module
from fencepost.clusters.kafka.launch import server_command
from fencepost.clusters.kafka.preparation import class_archives
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.provision.class_archives import _read
from fencepost.history.failure import HarnessError

ROLES = (Role.CONTROLLER, Role.BROKER)

pytestmark = pytest.mark.kafka

Prepare = Callable[[KafkaSpec], KafkaPrepared]


def start(
    prepared: KafkaPrepared, archive: Path | None, *options: str
) -> "subprocess.CompletedProcess[str]":
    """Start a server on a configuration that is not there: the JVM comes up, and Kafka ends."""
    command = server_command(
        java=prepared.java,
        release=prepared.release,
        properties=Path("/nowhere"),
        hosts=Path("/nowhere"),
        class_archive=archive,
        options=options,
    )
    return subprocess.run(command, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("role", ROLES)
def test_the_archive_of_a_role_is_what_its_servers_start_from(
    prepared: Prepare, role: Role
) -> None:
    ready = prepared(KafkaSpec(release="3.4.1"))
    started = start(ready, ready.class_archives[role], "-Xlog:class+load:stdout")
    [line] = [line for line in started.stdout.splitlines() if " kafka.Kafka$ source" in line]
    assert line.endswith("source: shared objects file")


def test_an_archive_that_is_not_there_is_ignored(prepared: Prepare, tmp_path: Path) -> None:
    ready = prepared(KafkaSpec(release="3.4.1"))
    started = start(ready, tmp_path / "missing.jsa")
    assert started.returncode == 1
    assert "NoSuchFileException: /nowhere" in started.stdout


def tear(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:1000])


def alter(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[::-1])


@pytest.mark.parametrize("damage", [tear, alter, Path.unlink])
def test_a_damaged_archive_is_never_used(
    prepared: Prepare, tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    ready = prepared(KafkaSpec(release="3.4.1"))
    home = tmp_path / "archives"
    shutil.copytree(ready.class_archives[Role.BROKER].parent, home)
    assert set(_read(home, dict.fromkeys(ROLES, ())) or ()) == set(ROLES)
    broker = home / "broker.jsa"
    broker.chmod(0o644)
    damage(broker)
    assert _read(home, dict.fromkeys(ROLES, ())) is None


def test_a_training_that_fails_only_costs_speed(
    prepared: Prepare, warden: Warden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HarnessError("broker-1 ended with exit code 1")

    monkeypatch.setattr(module, "_train", fail)
    ready = prepared(KafkaSpec(release="3.4.1"))
    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path))
    said: list[str] = []
    assert class_archives(ready, warden=warden, progress=said.append) == {}
    assert said[-1] == "starts of Kafka 3.4.1 will be slow: broker-1 ended with exit code 1"
