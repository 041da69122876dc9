"""Settings that a release or a client does not know are refused with the nearest name."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fencepost.clusters.kafka.releases import release_here
from fencepost.clusters.kafka.setting_names import SettingNames, names_in
from fencepost.clusters.systems import KAFKA
from fencepost.harness.prepare import settings
from fencepost.harness.prepare.settings import has_settings, refuse_unknown_of_clients, unknown_in
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.history.failure import SpecError, UsageError

NAMES = SettingNames(
    nodes=frozenset({"min.insync.replicas", "broker.rack", "ssl.keystore.location"}),
    topics=frozenset({"min.insync.replicas", "retention.ms"}),
    constants=frozenset({"unstable.api.versions.enable"}),
)
SCENARIO = """\
name: settled
cluster: {brokers: 3, broker_settings: {BROKER}}
topics: [{name: t, settings: {TOPIC}}]
workload: {kind: produce-poll, settings: {CLIENT}}
play:
  - configure: broker-1
    settings: {STEP}
"""


def load(tmp_path: Path, **stated: str) -> Scenario:
    text = SCENARIO
    for place in ("BROKER", "TOPIC", "CLIENT"):
        text = text.replace(f"{{{place}}}", f"{{{stated.get(place, '')}}}")
    path = tmp_path / "settled.yaml"
    path.write_text(text.replace("STEP", stated.get("STEP", "broker.rack: a")))
    return load_scenario(path, [])


@pytest.mark.parametrize(
    ("place", "setting", "path"),
    [
        ("BROKER", "min.insync.replica: 2", "cluster.broker_settings.min.insync.replica"),
        ("STEP", "broker.rak: a", "play.0.settings.broker.rak"),
        ("TOPIC", "retentio.ms: -1", "topics.0.settings.retentio.ms"),
        ("TOPIC", "broker.rack: a", "topics.0.settings.broker.rack"),
    ],
)
def test_a_name_that_the_release_does_not_define_is_refused(
    tmp_path: Path, place: str, setting: str, path: str
) -> None:
    with pytest.raises(SpecError, match=r"Kafka 4\.3\.1 has no setting") as refused:
        unknown_in(load(tmp_path, **{place: setting}), NAMES, release="4.3.1").refuse()
    assert ".".join(map(str, refused.value.path)) == path
    if place != "TOPIC" or "retentio" in setting:
        assert "did you mean" in refused.value.message


@pytest.mark.parametrize(
    "setting",
    [
        "min.insync.replicas: 2",
        "unstable.api.versions.enable: true",
        "listener.name.client.ssl.keystore.location: x",
        "fencepost.metadata.snapshot.records: 200",
    ],
)
def test_what_it_defines_is_not_refused(tmp_path: Path, setting: str) -> None:
    unknown_in(load(tmp_path, BROKER=setting), NAMES, release="4.3.1").refuse()


def test_a_kind_of_which_a_release_tells_nothing_is_not_judged(tmp_path: Path) -> None:
    nothing = SettingNames(nodes=frozenset(), topics=frozenset(), constants=frozenset())
    unknown_in(load(tmp_path, BROKER="any.thing: 1"), nothing, release="4.3.1").refuse()


def test_clients_refuse_what_their_library_does_not_know(tmp_path: Path) -> None:
    refuse_unknown_of_clients(load(tmp_path, CLIENT="compression.type: lz4"))
    with pytest.raises(UsageError, match=r'settled\.yaml:4: .*"compresion.type"'):
        refuse_unknown_of_clients(load(tmp_path, CLIENT="compresion.type: lz4"))


def test_names_are_read_from_the_pages_of_both_kinds() -> None:
    page = (
        '<h4><a id="retention.ms"></a><a id="topicconfigs_retention.ms" '
        'href="#topicconfigs_retention.ms">retention.ms</a></h4>'
        '<a id="brokerconfigs_broker.rack" href="#x">'
    )
    assert names_in(page) == {"retention.ms", "broker.rack"}


def test_a_scenario_without_settings_asks_no_release() -> None:
    assert has_settings(load_scenario(find_scenario("kip-903"), []))


def test_a_release_whose_names_are_stored_is_asked_without_a_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_args: object, **_kept: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setenv("FENCEPOST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(settings, "find_java", forbidden)
    monkeypatch.setattr(settings, "Warden", forbidden)
    build = tmp_path / "build"
    build.mkdir()
    (build / "kafka-clients-9.9.9.jar").write_bytes(b"")
    release = release_here(f"path:{build}")
    assert release is not None
    mistaken = load(tmp_path, BROKER="broker.rak: a")
    scenario = replace(mistaken, cluster=replace(mistaken.cluster, release=release.name))
    with pytest.raises(AssertionError, match="a process was started"):
        settings.refuse_unknown_in_cache(scenario, KAFKA, lambda _: None)
    told = {kind: sorted(getattr(NAMES, kind)) for kind in ("nodes", "topics", "constants")}
    entry = tmp_path / "cache/settings" / f"9.9.9-{release.digest[:16]}"
    entry.mkdir(parents=True)
    (entry / "names.json").write_text(json.dumps(told))
    with pytest.raises(UsageError, match=r"settled\.yaml:2: .*did you mean 'broker\.rack'"):
        settings.refuse_unknown_in_cache(scenario, KAFKA, lambda _: None)
