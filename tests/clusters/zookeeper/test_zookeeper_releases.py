"""One release comes with PySpark; others are fetched once; what there is not is refused."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision import release_line
from fencepost.clusters.provision import releases as fetching
from fencepost.clusters.provision.cache import CACHE_VARIABLE
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import Coordinates, NotInRepositoryError, RunProgram
from fencepost.clusters.zookeeper.releases import fetch_release, is_here
from fencepost.history.failure import UsageError

JAVA = Java(home=Path("/j"), executable=Path("/j/bin/java"), version="17", build="b", source="s")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What was asked of the repository, which has everything but 3.5.99."""
    asked: list[list[str]] = []

    def fetch_jars(
        wanted: list[Coordinates], *, into: Path, java: Java, run: RunProgram, work: Path
    ) -> None:
        assert (java, work.is_dir(), callable(run)) == (JAVA, True, True)
        asked.append([f"{one.name}-{one.revision}" for one in wanted])
        if wanted[0].revision == "3.5.99":
            raise NotInRepositoryError("it does not have it")
        into.mkdir()
        for one in wanted:
            (into / f"{one.name}-{one.revision}.jar").write_text(one.name)

    monkeypatch.setattr(fetching, "fetch_jars", fetch_jars)
    # What it has is made up.
    monkeypatch.setattr(release_line, "PINNED", {})
    return asked


def fetch(name: str, warden: Warden) -> fetching.Release:
    return fetch_release(name, java=JAVA, warden=warden, progress=lambda _: None)


def brought() -> str:
    """The release among PySpark's jars."""
    found = find_spec("pyspark")
    assert found is not None
    assert found.submodule_search_locations is not None
    (jar,) = Path(found.submodule_search_locations[0], "jars").glob("zookeeper-[0-9]*.jar")
    return jar.stem.removeprefix("zookeeper-")


def test_the_release_that_pyspark_brings_is_copied_and_not_fetched(
    warden: Warden, fetched: list[list[str]]
) -> None:
    name = brought()
    assert is_here(name)
    release = fetch(name, warden)
    assert fetched == []
    names = [jar.name for jar in release.jars]
    assert f"zookeeper-{name}.jar" in names
    assert any(jar.startswith("log4j-core-") for jar in names)
    assert not any("spark" in jar or jar.startswith("netty-tcnative") for jar in names)
    assert release.version == name


def test_another_release_is_fetched_once_with_what_its_coordinates_leave_out(
    warden: Warden, fetched: list[list[str]]
) -> None:
    first, second = fetch("3.6.4", warden), fetch("3.6.4", warden)
    assert first == second
    ((server, *others),) = fetched
    assert server == "zookeeper-3.6.4"
    assert [one.rpartition("-")[0] for one in others] == ["metrics-core", "snappy-java"]


@pytest.mark.parametrize("name", ["three", "3.9", "path:/x", "3.4.14"])
def test_what_is_no_release_of_ours_is_refused_with_those_that_are(name: str) -> None:
    with pytest.raises(UsageError, match=r"releases known to work: 3\.5\.10"):
        is_here(name)


def test_a_release_that_does_not_exist_is_said(warden: Warden, fetched: list[list[str]]) -> None:
    with pytest.raises(UsageError, match=r"ZooKeeper 3\.5\.99 cannot be had"):
        fetch("3.5.99", warden)
    assert len(fetched) == 1
