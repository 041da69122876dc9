"""The command line of a node: what it says, and that the user's options win."""

from pathlib import Path

import pytest

from fencepost.clusters.kafka.launch import server_command, tool_command
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release

JAVA = Java(
    home=Path("/java"), executable=Path("/java/bin/java"), version="17", build="", source="PATH"
)
RELEASE = Release(name="1", version="1", jars=(Path("/a.jar"), Path("/b.jar")), digest="")


def command(*options: str, class_archive: Path | None = None) -> list[str]:
    return server_command(
        java=JAVA,
        release=RELEASE,
        properties=Path("/n/server.properties"),
        hosts=Path("/n/hosts"),
        class_archive=class_archive,
        options=options,
    )


def test_it_runs_kafka_on_the_releases_jars_with_its_own_names() -> None:
    argv = command(class_archive=Path("/broker.jsa"))
    assert argv[0] == "/java/bin/java"
    assert argv[-4:] == ["-cp", "/a.jar:/b.jar", "kafka.Kafka", "/n/server.properties"]
    assert {
        "-Djdk.net.hosts.file=/n/hosts",
        "-Dsun.net.inetaddr.ttl=0",
        "-XX:+ExitOnOutOfMemoryError",
        "-XX:SharedArchiveFile=/broker.jsa",
    } <= set(argv)


def test_options_of_the_users_own_come_last() -> None:
    argv = command("-Xmx2g", "-Dx=y")
    assert argv.index("-Xmx256m") < argv.index("-Xmx2g") < argv.index("-cp")


@pytest.mark.parametrize(
    ("options", "ours"), [((), 1), (("-XX:+UseG1GC",), 0), (("-XX:+UseNUMA",), 1)]
)
def test_a_collector_of_the_users_own_replaces_ours(options: tuple[str, ...], ours: int) -> None:
    assert command(*options).count("-XX:+UseSerialGC") == ours


def test_without_an_archive_none_is_named() -> None:
    assert not any("SharedArchiveFile" in argument for argument in command())


def test_a_tool_says_nothing_but_its_own_words() -> None:
    argv = tool_command("kafka.tools.X", ("--help",), java=JAVA, release=RELEASE)
    assert "-Dorg.slf4j.simpleLogger.defaultLogLevel=error" in argv
    assert argv[-4:] == ["-cp", "/a.jar:/b.jar", "kafka.tools.X", "--help"]
