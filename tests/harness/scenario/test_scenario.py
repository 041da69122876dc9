from pathlib import Path

import pytest

from fencepost.checkers.verdict import Validity
from fencepost.harness.scenario.requirement import Requirement, is_shortened
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario, library
from fencepost.history.failure import UsageError
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.workloads.metadata_spec import MetadataSpec

GOOD = """\
name: trial
title: A trial
cluster:
  kafka: 3.9.2
  brokers: 3
  settings: {replica.lag.time.max.ms: 3000, auto.leader.rebalance.enable: false}
topics:
  - name: t
    partitions: 2
  - {name: u, replicas: [[1, 2], [2, 3]]}
workload:
  kind: produce-poll
  rate: 500
nemesis:
  faults: [kill, pause]
  gap: [1s, 2s]
  duration: 3s
time_limit: 30s
expect:
  - {kafka: "<3.5", invalid: [lost-write]}
  - valid: true
"""


NEMESIS = """\
nemesis:
  faults: [kill, pause]
  gap: [1s, 2s]
  duration: 3s
"""
DEMANDING = GOOD.replace(
    "expect:", "require: {faults: [kill, pause], judged: [lost-write]}\nexpect:"
)


def load(tmp_path: Path, text: str, *overrides: tuple[tuple[str, ...], object, str]) -> Scenario:
    path = tmp_path / "trial.yaml"
    path.write_text(text)
    return load_scenario(path, overrides)


def test_a_scenario_is_read_as_written(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD)
    assert scenario.cluster.release == "3.9.2"
    assert scenario.cluster.settings["auto.leader.rebalance.enable"] == "false"
    assert scenario.keys == ("t-0", "t-1", "u-0", "u-1")
    assert scenario.topics[1].replication_factor == 2
    assert scenario.workload.rate == 500
    assert scenario.mix == MixSpec(
        faults=("kill", "pause"), gap_s=(1.0, 2.0), duration_s=(3.0, 3.0)
    )
    assert scenario.time_limit_s == 30
    assert [e.validity for e in scenario.expect] == [Validity.INVALID, Validity.VALID]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("rate: 500", "rte: 500", "trial.yaml:13: workload.rte: unknown key 'rte'; did you mean"),
        ("rate: 500", "rate: fast", "trial.yaml:13: workload.rate: Input should be a valid number"),
        ("kind: produce-poll", "kind: chat", "trial.yaml:12: workload.kind: unknown workload"),
        ("[kill, pause]", "[kill, poison]", "nemesis.faults[1]: unknown fault 'poison'; allowed"),
        ("gap: [1s, 2s]", "gap: [2s, 1s]", "trial.yaml:16: nemesis.gap: expected the shorter"),
        ("gap: [1s, 2s]", "targets: [broker-9]", "'broker-9' is not a target here"),
        (
            "brokers: 3",
            "brokers: 2",
            "trial.yaml:10: topics[1].replicas[1]: expected different brokers",
        ),
        ("brokers: 3", "brokers: 3\n  controllers: 2", "1, 3 or 5 controllers, found 2"),
        ("brokers: 3", "brokers: 3\n  quorum: elastic", "'static' or 'dynamic', found 'elastic'"),
        ("kafka: 3.9.2", "kafka: 3.9", "quote it: '3.9'"),
        (
            "partitions: 2",
            "partitions: 0",
            "trial.yaml:9: topics[0].partitions: expected 1 to 10000 ",
        ),
        ("partitions: 2", "partitions: 1000000000", "1 to 10000 partitions, found 1000000000"),
        (
            "name: t\n",
            "name: ../../etc\n",
            "topics[0].name: expected 1 to 249 of A-Z, a-z, 0-9, '.', '_'",
        ),
        # Settings: one value for all, that can be, and that leaves checks something to judge.
        (
            "brokers: 3",
            "brokers: 3\n  broker_settings: {broker.rack: [a, b]}",
            "trial.yaml:6: cluster.broker_settings.broker.rack: expected one value, the same for",
        ),
        (
            "partitions: 2",
            "settings: {min.insync.replicas: 7}",
            "settings.min.insync.replicas: 7, and t has 3 replicas: nothing would be acknowledged",
        ),
        (
            "partitions: 2",
            "settings: {cleanup.policy: compact}",
            "trial.yaml:9: topics[0].settings.cleanup.policy: compaction removes records",
        ),
        (
            "partitions: 2",
            "settings: {retention.ms: 1000}",
            "trial.yaml:9: topics[0].settings.retention.ms: it removes records",
        ),
        (
            "brokers: 3",
            "brokers: 3\n  broker_settings: {log.retention.hours: 1}",
            "cluster.broker_settings.log.retention.hours: it removes records",
        ),
        ("name: t\n", "name: u\n", "topic 'u' is listed twice"),
        ("title: A trial", "titel: A trial", "trial.yaml:2: titel: unknown key 'titel'"),
        ("name: trial", "name: My Trial", "trial.yaml:1: name: a name is of a-z"),
        ("time_limit: 30s", "time_limit: later", "trial.yaml:18: time_limit: 'later' is not a"),
        ("time_limit: 30s", "play: []", "trial.yaml:18: play: a scenario has a nemesis or a play"),
        ("[lost-write]", "[lost-rite]", "unknown anomaly 'lost-rite'; did you mean 'lost-write'"),
        ('kafka: "<3.5"', 'kafka: "old"', "expect[0].kafka: 'old' is not a range of versions"),
        ("title: A trial", "name: again", "trial.yaml:2: 'name' is given twice"),
        ("title: A trial", "title: [A trial", "trial.yaml:3: not YAML"),
        ("  rate: 500", "  idempotence: true\n  acks: 1", "idempotence needs acks: all"),
    ],
)
def test_what_cannot_be_is_one_line_with_its_place(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    assert old in GOOD
    with pytest.raises(UsageError) as refused:
        load(tmp_path, GOOD.replace(old, new))
    message = str(refused.value)
    assert says in message
    assert "trial.yaml:" in message
    assert "\n" not in message


def test_a_flag_wins_over_the_file_and_is_named_when_it_is_wrong(tmp_path: Path) -> None:
    scenario = load(tmp_path, GOOD, (("cluster", "kafka"), "4.3.1", "--kafka"))
    assert scenario.cluster.release == "4.3.1"
    with pytest.raises(UsageError, match=r"^--nemesis: nemesis.faults\[0\]: unknown fault 'kil'"):
        load(tmp_path, GOOD, (("nemesis", "faults"), ["kil"], "--nemesis"))


def test_what_is_run_is_written_down_with_its_flags(tmp_path: Path) -> None:
    assert load(tmp_path, GOOD).document.resolved() == GOOD
    changed = load(tmp_path, GOOD, (("time_limit",), "10s", "--time-limit"))
    again = load(tmp_path, changed.document.resolved())
    assert again.time_limit_s == 10
    assert again.mix == changed.mix


TWO_WORKLOADS = """\
name: two
topics: [{name: t}]
workload:
  - {kind: metadata}
  - {kind: produce-poll, rate: 500}
"""


def test_a_flag_for_the_workload_is_about_the_one_of_records(tmp_path: Path) -> None:
    scenario = load(tmp_path, TWO_WORKLOADS, (("workload", "rate"), 70, "--rate"))
    assert scenario.workload.rate == 70
    assert [type(spec) for spec in scenario.beside] == [MetadataSpec]
    assert load(tmp_path, scenario.document.resolved()).workload.rate == 70
    with pytest.raises(UsageError, match=r"^--rate: workload\[1\]\.rate: Input should be"):
        load(tmp_path, TWO_WORKLOADS, (("workload", "rate"), "x", "--rate"))


def test_a_control_is_the_same_scenario_without_faults(tmp_path: Path) -> None:
    control = load(tmp_path, GOOD).without_faults()
    assert control.mix is None
    again = load(tmp_path, control.document.resolved())
    assert (again.mix, again.play, again.expect) == (None, None, ())
    assert again.workload == control.workload


def test_every_scenario_of_the_distribution_can_be_found_by_name_and_read() -> None:
    assert {"smoke", "unclean-election", "acks-1", "last-replica"} <= set(library())
    for name, path in library().items():
        assert load_scenario(find_scenario(name), []).name == path.stem


@pytest.mark.parametrize(
    ("require", "says"),
    [
        ("[kill]", "trial.yaml:19: require: expected keys and values"),
        ("{fault: [kill]}", "require.fault: unknown key 'fault'; did you mean 'faults'?"),
        ("{faults: kill}", "require.faults: expected a list, e.g. [kill]; found 'kill'"),
        (
            "{faults: [kill, pawse]}",
            "require.faults[1]: unknown fault 'pawse'; did you mean 'pause'",
        ),
        ("{faults: [wipe]}", "require.faults[0]: 'wipe' is never begun here; allowed: kill, pause"),
        ("{served: [wipe]}", "require.served[0]: 'wipe' is never begun here; allowed: kill, pause"),
        (
            "{judged: [lost-rite]}",
            "judged[0]: unknown anomaly 'lost-rite'; did you mean 'lost-write'",
        ),
        ("{judged: [evidence]}", "require.judged[0]: unknown anomaly 'evidence'"),
        (
            "{windows: [AlterParition]}",
            "require.windows[0]: unknown message 'AlterParition'; did you mean 'AlterPartition'",
        ),
        (
            "{windows: [Vote]}",
            "require.windows[0]: 'Vote' is never held here; nothing here waits for a message",
        ),
    ],
)
def test_what_cannot_be_demanded_is_refused_with_its_place(
    tmp_path: Path, require: str, says: str
) -> None:
    with pytest.raises(UsageError) as refused:
        load(tmp_path, DEMANDING.replace("{faults: [kill, pause], judged: [lost-write]}", require))
    assert says in str(refused.value)


def test_a_scenario_demands_kinds_of_fault_and_checks(tmp_path: Path) -> None:
    scenario = load(tmp_path, DEMANDING)
    assert scenario.require == Requirement(faults=("kill", "pause"), judged=("lost-write",))
    assert (scenario.asked_faults, scenario.drawn) == (("kill", "pause"), True)
    assert load(tmp_path, GOOD).require == Requirement()
    some = load(tmp_path, DEMANDING.replace("{faults: [kill, pause],", "{served: [],"))
    assert some.require == Requirement(served=(), judged=("lost-write",))


def test_a_scenario_demands_strikes_in_windows_that_its_mix_may_open(tmp_path: Path) -> None:
    text = GOOD.replace("[kill, pause]", "[kill, window]").replace(
        "expect:", "require: {windows: [AlterPartition, Fetch]}\nexpect:"
    )
    scenario = load(tmp_path, text)
    assert scenario.require == Requirement(windows=("AlterPartition", "Fetch"))
    assert "AlterPartition response" in scenario.asked_windows
    (tmp_path / "again.yaml").write_text(scenario.document.resolved())
    assert load_scenario(tmp_path / "again.yaml", []).require == scenario.require
    steered = load(tmp_path, text, (("nemesis", "windows"), ["Fetch"], "--window"))
    assert steered.require == Requirement(windows=("Fetch",))
    other = load(tmp_path, text, (("nemesis", "faults"), ["kill"], "--nemesis"))
    assert (other.require, other.asked_windows) == (Requirement(), ())
    with pytest.raises(UsageError, match="'Vote' is never held here; allowed: AlterPartition, "):
        load(tmp_path, text.replace("[AlterPartition, Fetch]", "[Vote]"))


def test_a_flag_for_other_faults_leaves_of_the_demand_what_is_still_asked_for(
    tmp_path: Path,
) -> None:
    other = load(tmp_path, DEMANDING, (("nemesis", "faults"), ["pause", "restart"], "--nemesis"))
    assert other.require == Requirement(faults=("pause",), judged=("lost-write",))
    # What is stored is what was run: a replay reads it, and finds nothing that is never begun.
    (tmp_path / "again.yaml").write_text(other.document.resolved())
    assert load_scenario(tmp_path / "again.yaml", []).require == other.require
    assert other.without_faults().require == Requirement()
    assert other.without_faults().asked_faults == ()


def test_the_demands_stay_in_force_under_a_shorter_time_limit(tmp_path: Path) -> None:
    limit = ("time_limit",)
    shorter = load(tmp_path, DEMANDING, (limit, "20s", "--time-limit"))
    assert shorter.require == load(tmp_path, DEMANDING).require
    assert shorter.mix is not None
    assert shorter.mix.demanded == ("kill", "pause")
    assert shorter.waived == ()
    assert is_shortened(shorter.document)
    longer = load(tmp_path, DEMANDING, (limit, "2m", "--time-limit"))
    assert longer.require.faults == ("kill", "pause")
    assert not is_shortened(longer.document)
    play = "play: [{kill: broker-1}, {start: broker-1}]\n"
    of_play = DEMANDING.replace(", pause], j", "], j").replace(NEMESIS, play)
    assert load(tmp_path, of_play, (limit, "20s", "--time-limit")).require.faults == ("kill",)


def test_what_a_flag_waives_is_named_with_the_flag(tmp_path: Path) -> None:
    none = load(tmp_path, DEMANDING, (("require",), {}, "--no-require"))
    assert none.require == Requirement()
    assert none.waived == (
        "faults kill, pause (--no-require)",
        "judged lost-write (--no-require)",
    )
    # During which faults no client is served is no demand, and goes on to hold.
    some = DEMANDING.replace("{faults: [kill, pause],", "{served: [pause],")
    assert load(tmp_path, some, (("require",), {}, "--no-require")).require.served == ("pause",)
    other = load(tmp_path, DEMANDING, (("nemesis", "faults"), ["pause"], "--nemesis"))
    assert other.waived == ("faults kill (--nemesis)",)
    assert load(tmp_path, DEMANDING).without_faults().waived == (
        "faults kill, pause (--nemesis none)",
        "judged lost-write (--nemesis none)",
    )
    assert load(tmp_path, DEMANDING).waived == ()
    assert load(tmp_path, GOOD, (("require",), {}, "--no-require")).waived == ()
    wrong = DEMANDING.replace("[kill, pause], j", "[kil], j")
    with pytest.raises(UsageError, match="unknown fault 'kil'"):
        load(tmp_path, wrong, (("require",), {}, "--no-require"))


def test_bounds_are_held_until_they_are_waived(tmp_path: Path) -> None:
    text = GOOD.replace("expect:", "require: {unavailable_max: 10s, p99_max: 500ms}\nexpect:")
    scenario = load(tmp_path, text)
    assert scenario.require.bounds == {"unavailable_max_s": 10, "p99_max_ms": 500}
    assert scenario.require.as_data()["p99_max"] == "0.5s"
    calmer = load(tmp_path, text, (("nemesis", "faults"), ["pause"], "--nemesis"))
    assert calmer.require.bounds == scenario.require.bounds
    none = load(tmp_path, text, (("require",), {}, "--no-require"))
    assert (none.require.bounds, len(none.waived)) == ({}, 2)


def test_bounds_that_are_counts_are_stated_as_numbers(tmp_path: Path) -> None:
    text = GOOD.replace("expect:", "require: {client_duplicates_max: 0}\nexpect:")
    scenario = load(tmp_path, text)
    assert scenario.require.bounds == {"client_duplicates_max_count": 0}
    assert scenario.require.as_data()["client_duplicates_max"] == 0
    none = load(tmp_path, text, (("require",), {}, "--no-require"))
    assert none.waived == ("client_duplicates_max 0 (--no-require)",)
    for wrong in ("-1", "1.5", "true", "none"):
        with pytest.raises(UsageError, match=r"trial\.yaml:\d+: require\.client_duplicates_max"):
            load(tmp_path, text.replace("_max: 0", f"_max: {wrong}"))


@pytest.mark.parametrize("bound", ["0s", "soon", "[1s]", "true"])
def test_a_bound_is_a_duration_above_zero(tmp_path: Path, bound: str) -> None:
    text = GOOD.replace("expect:", f"require:\n  p99_max: {bound}\nexpect:")
    with pytest.raises(UsageError, match=r"trial\.yaml:\d+: require\.p99_max"):
        load(tmp_path, text)


def test_every_scenario_of_the_distribution_demands_the_kinds_of_fault_that_it_is_about() -> None:
    for path in library().values():
        scenario = load_scenario(path, [])
        assert scenario.require.faults, path
        assert set(scenario.require.faults) <= set(scenario.asked_faults)
        # What is drawn may never come, but for what comes first.
        assert scenario.mix is None or scenario.mix.demanded == scenario.require.faults, path


def test_an_unknown_scenario_is_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="no scenario 'smok': did you mean 'smoke'"):
        find_scenario("smok")


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a scenario is a mapping"):
        load(tmp_path, "- kill\n")
    with pytest.raises(UsageError, match="cannot read it"):
        load_scenario(tmp_path / "none.yaml", [])


@pytest.mark.parametrize(
    ("name", "drawn"), [("storm", True), ("combined-storm", True), ("kafka-zookeeper-storm", False)]
)
def test_strikes_hold_only_what_a_cluster_sends(name: str, *, drawn: bool) -> None:
    mix = load_scenario(find_scenario(name), []).mix
    assert mix is not None
    assert ("late_fetch" in mix.faults) is drawn
    assert "relay" in mix.faults
