"""A release is what was fetched, or it is not used; a build of the user's own is taken as it is."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.releases import KNOWN_RELEASES, fetch_release
from fencepost.clusters.provision import release_line
from fencepost.clusters.provision import releases as fetching
from fencepost.clusters.provision.cache import CACHE_VARIABLE, cache_dir
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import Coordinates, NotInRepositoryError, RunProgram
from fencepost.clusters.provision.pinned import PINNED
from fencepost.clusters.provision.releases import Release, version_numbers
from fencepost.history.failure import HarnessError, UsageError

JAVA = Java(home=Path("/java"), executable=Path("/java"), version="17", build="", source="PATH")

Fetch = Callable[[str], Release]


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[Coordinates]]:
    """What was asked of the repository, which has everything."""
    asked: list[list[Coordinates]] = []

    def fetch_jars(
        wanted: list[Coordinates], *, into: Path, java: Java, run: RunProgram, work: Path
    ) -> None:
        assert java is JAVA
        assert run
        assert list(work.iterdir()) == []
        asked.append(wanted)
        into.mkdir()
        for one in wanted:
            (into / f"{one.name}-{one.revision}.jar").write_text(one.name)

    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(fetching, "fetch_jars", fetch_jars)
    # What it has is made up.
    monkeypatch.setattr(release_line, "PINNED", {})
    return asked


@pytest.fixture
def fetch(warden: Warden) -> Fetch:
    return lambda name: fetch_release(name, java=JAVA, warden=warden, progress=lambda _: None)


def refuse(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fetch_jars(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fetching, "fetch_jars", fetch_jars)


def test_a_release_is_fetched_once_with_a_logging_back_end(
    fetched: list[list[Coordinates]], fetch: Fetch
) -> None:
    release = fetch("3.4.1")
    assert fetch("3.4.1") == release
    assert [[one.name for one in wanted] for wanted in fetched] == [["kafka_2.13", "slf4j-simple"]]
    assert (release.name, release.version) == ("3.4.1", "3.4.1")
    assert [jar.name for jar in release.jars] == ["kafka_2.13-3.4.1.jar", "slf4j-simple-1.7.36.jar"]
    assert release.class_path == ":".join(str(jar) for jar in release.jars)
    assert len(release.digest) == 64


def test_another_content_has_another_digest(fetched: list[list[Coordinates]], fetch: Fetch) -> None:
    assert fetch("3.4.1").digest != fetch("4.3.1").digest
    assert len(fetched) == 2


def test_other_jars_under_the_name_of_a_release_on_record_are_refused(
    fetched: list[list[Coordinates]], fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release_line, "PINNED", PINNED)
    for _ in range(2):
        with pytest.raises(HarnessError, match=r"Kafka 4\.3\.1: its jars are not those of the"):
            fetch("4.3.1")
    assert len(fetched) == 1
    # Of a release that nothing rests on, nothing is pinned.
    assert fetch("4.1.1").version == "4.1.1"


def damage_content(jar: Path) -> None:
    before = jar.stat()
    jar.write_text(jar.read_text()[::-1])
    assert jar.stat().st_size == before.st_size


def remove_index(jar: Path) -> None:
    (jar.parents[1] / "release.json").unlink()


def tear_index(jar: Path) -> None:
    (jar.parents[1] / "release.json").write_text('{"kafka')


def add_jar(jar: Path) -> None:
    (jar.parent / "stranger.jar").touch()


@pytest.mark.parametrize("damage", [damage_content, Path.unlink, remove_index, tear_index, add_jar])
def test_a_damaged_release_is_fetched_again(
    fetched: list[list[Coordinates]], fetch: Fetch, damage: Callable[[Path], None]
) -> None:
    release = fetch("3.4.1")
    damage(release.jars[0])
    assert fetch("3.4.1") == release
    assert len(fetched) == 2
    assert sorted(path.name for path in release.jars[0].parent.iterdir()) == [
        "kafka_2.13-3.4.1.jar",
        "slf4j-simple-1.7.36.jar",
    ]


def test_a_release_that_was_merely_touched_or_copied_is_not_damaged(
    fetched: list[list[Coordinates]], fetch: Fetch
) -> None:
    os.utime(fetch("3.4.1").jars[0], ns=(1, 1))
    fetch("3.4.1")
    assert len(fetched) == 1


@pytest.mark.parametrize(
    ("name", "guess"),
    [
        ("", ""),
        ("latest", ""),
        ("3.4", "did you mean 3.4.1?; "),
        ("v3.4.1", ""),
        ("../3.4.1", ""),
        ("3.4.1/x", ""),
        ("3.4.1 ", ""),
    ],
)
def test_what_is_not_a_release_is_refused_with_the_ways_out(
    fetch: Fetch, name: str, guess: str
) -> None:
    with pytest.raises(UsageError) as raised:
        fetch(name)
    assert str(raised.value) == (
        f'"{name}" is not a release of Kafka; {guess}releases known to work: '
        f"{', '.join(KNOWN_RELEASES)}; or path:DIR for a build"
    )


def test_a_release_that_needs_zookeeper_is_refused(fetch: Fetch) -> None:
    with pytest.raises(UsageError, match=r"Kafka 3\.2\.3 is too old to run without ZooKeeper"):
        fetch("3.2.3")


@pytest.mark.usefixtures("fetched")
def test_a_release_that_does_not_exist_is_the_users_error_and_leaves_nothing(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, NotInRepositoryError("https://r/ does not have it"))
    with pytest.raises(UsageError) as raised:
        fetch("9.9.9")
    assert str(raised.value) == (
        "Kafka 9.9.9 cannot be had: https://r/ does not have it; known to work: "
        f"{', '.join(KNOWN_RELEASES)}"
    )
    assert [path for path in (cache_dir() / "kafka").iterdir() if path.is_dir()] == []


@pytest.mark.usefixtures("fetched")
def test_without_a_network_and_a_cache_it_is_not_the_users_error(
    fetch: Fetch, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, HarnessError("https://r/ could not be reached: UnknownHostException: r"))
    with pytest.raises(HarnessError) as raised:
        fetch("3.4.1")
    assert not isinstance(raised.value, UsageError)
    assert str(raised.value) == (
        "Kafka 3.4.1 is not in the cache, and https://r/ could not be reached: "
        "UnknownHostException: r"
    )


@pytest.mark.parametrize("place", ["libs", "."])
def test_a_build_of_the_users_own_is_taken_as_it_is(
    tmp_path: Path, fetch: Fetch, place: str
) -> None:
    jars = tmp_path / place
    jars.mkdir(exist_ok=True)
    for name in ("kafka-clients-4.4.0-SNAPSHOT", "kafka_2.13-4.4.0-SNAPSHOT-sources", "zstd"):
        (jars / f"{name}.jar").write_text(name)
    release = fetch(f"path:{tmp_path}")
    assert release.version == "4.4.0-SNAPSHOT"
    assert [jar.name for jar in release.jars] == ["kafka-clients-4.4.0-SNAPSHOT.jar", "zstd.jar"]
    (jars / "zstd.jar").write_text("another")
    assert fetch(f"path:{tmp_path}").digest != release.digest


def test_a_directory_that_is_no_build_says_what_was_expected(tmp_path: Path, fetch: Fetch) -> None:
    with pytest.raises(UsageError) as raised:
        fetch(f"path:{tmp_path}/nowhere")
    assert str(raised.value) == (
        f"path:{tmp_path}/nowhere: neither {tmp_path}/nowhere/libs/ nor {tmp_path}/nowhere/ holds "
        "a kafka-clients-*.jar; expected an unpacked distribution of Kafka or a directory of all "
        "its jars"
    )


def test_two_builds_in_one_place_are_refused(tmp_path: Path, fetch: Fetch) -> None:
    for version in ("3.4.1", "4.3.1"):
        (tmp_path / f"kafka-clients-{version}.jar").touch()
    with pytest.raises(
        UsageError, match=r"several versions of Kafka in one place: 3\.4\.1, 4\.3\.1"
    ):
        fetch(f"path:{tmp_path}")


def test_a_path_that_java_would_split_is_refused(tmp_path: Path, fetch: Fetch) -> None:
    with pytest.raises(UsageError, match="rename it"):
        fetch(f"path:{tmp_path}/a:b")


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("3.4.1", (3, 4, 1)), ("4.4.0-SNAPSHOT", (4, 4, 0)), ("3.9.0-rc2", (3, 9, 0))],
)
def test_versions_compare_by_their_numbers(version: str, numbers: tuple[int, ...]) -> None:
    assert version_numbers(version) == numbers
