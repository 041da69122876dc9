"""K11: directories are inspected and formatted, and no node starts on one that is not."""

from pathlib import Path

import pytest

from fencepost.clusters.reference.shell.storage_tool import main

_MODE = "kip.500.mode=enabled"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(
        "process.roles=broker\nbroker.id=1\ncontroller.connect=1001@127.0.0.1:9093\n"
        "controller.listener.names=CONTROLLER\nlisteners=CLIENT://127.0.0.1:9092\n"
        f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}\nmetadata.log.dir={tmp_path / 'm'}\n"
    )
    return path


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["storage_tool", *arguments])
    return main()


def test_k11_info_tells_formatted_directories_from_others(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(monkeypatch, "info", "-c", str(config)) == 1
    assert capsys.readouterr().out.count("does not exist") == 3
    assert _run(monkeypatch, "format", "--config", str(config)) == 0
    capsys.readouterr()
    assert _run(monkeypatch, "info", "-c", str(config)) == 0
    assert capsys.readouterr().out.count(f"formatted for node 1 of cluster {_id(config)}") == 3


def test_k11_a_formatted_directory_says_its_mode(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert _run(monkeypatch, "format", "-c", str(config)) == 0
    for name in ("a", "b", "m"):
        assert _MODE in (config.parent / name / "meta.properties").read_text().splitlines()


def test_k11_what_is_not_empty_is_formatted_by_force_alone(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (config.parent / "b").mkdir()
    (config.parent / "b" / "precious").write_text("x")
    assert _run(monkeypatch, "format", "-c", str(config)) == 1
    assert "is not empty" in capsys.readouterr().err
    assert (config.parent / "b" / "precious").exists()
    assert _run(monkeypatch, "format", "-f", "-c", str(config)) == 0
    assert not (config.parent / "b" / "precious").exists()


def test_k11_one_directory_may_be_formatted_alone(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    b, other = str(config.parent / "b"), str(config.parent / "c")
    assert _run(monkeypatch, "format", "-c", str(config), "-d", b) == 0
    assert not (config.parent / "a").exists()
    assert _run(monkeypatch, "format", "-c", str(config), "-d", other) == 1
    assert "is none of the node's directories" in capsys.readouterr().err


def test_k12_a_bad_configuration_is_one_line(
    config: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text("process.roles=both\n")
    assert _run(monkeypatch, "info", "-c", str(config)) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "process.roles: expected one of broker, controller" in said[0]


def _id(config: Path) -> str:
    text = (config.parent / "a" / "meta.properties").read_text()
    return text.partition("cluster.id=")[2].splitlines()[0]
