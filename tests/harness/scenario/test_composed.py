"""Scenarios that extend others, and parameters: what they come to, and what is refused where."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.harness.scenario.composed import as_value, chosen_values
from fencepost.harness.scenario.flags import flag_overrides
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.history.failure import UsageError

PARENT = """\
name: parent
cluster: {brokers: 3, settings: {num.io.threads: 3, replica.lag.time.max.ms: 1500}}
topics: [{name: t, partitions: 2, replication_factor: 3}]
workload: {kind: produce-poll, producers: 1, consumers: 1, rate: 100, consume: assign}
nemesis: {faults: [kill], targets: [leader]}
time_limit: 20s
require: {faults: [kill]}
"""
CHILD = """\
extends: parent.yaml
name: child
title: ${rate} records a second, under ${faults}
parameters: {rate: 300, faults: [kill, pause]}
cluster: {settings: {num.io.threads: 5}}
topics: [{name: u, partitions: 1, replication_factor: 3}]
workload: {rate: "${rate}"}
nemesis: {faults: "${faults}"}
require: null
"""


def _loaded(folder: Path, child: str, *chosen: str, parent: str = PARENT) -> Scenario:
    (folder / "parent.yaml").write_text(parent)
    path = folder / "child.yaml"
    path.write_text(child)
    return load_scenario(path, flag_overrides({"set": chosen}))


def test_maps_are_merged_null_takes_away_and_all_else_replaces(tmp_path: Path) -> None:
    data = _loaded(tmp_path, CHILD).document.data
    assert data["cluster"]["settings"] == {"num.io.threads": 5, "replica.lag.time.max.ms": 1500}
    assert data["cluster"]["brokers"] == 3
    assert [topic["name"] for topic in data["topics"]] == ["u"]
    assert "require" not in data
    assert not {"extends", "parameters"} & set(data)


def test_a_parameter_keeps_its_kind_and_stands_in_texts(tmp_path: Path) -> None:
    data = _loaded(tmp_path, CHILD, "rate=7", "faults=[pause]").document.data
    assert data["workload"]["rate"] == 7
    assert data["nemesis"]["faults"] == ["pause"]
    assert data["title"] == "7 records a second, under [pause]"


def test_what_a_run_stores_needs_neither_the_other_file_nor_the_parameters(tmp_path: Path) -> None:
    made = _loaded(tmp_path, CHILD, "rate=7")
    stored = tmp_path / "elsewhere" / "scenario.yaml"
    stored.parent.mkdir()
    stored.write_text(made.document.resolved())
    again = load_scenario(stored, [])
    assert again.document.data == made.document.data
    assert again.workload == made.workload
    assert "rate=7" in stored.read_text().splitlines()[0]


def test_null_takes_away_what_is_not_there_either(tmp_path: Path) -> None:
    child = "extends: parent.yaml\nname: child\ncluster: {settings: {a: null}}\n"
    data = _loaded(tmp_path, child).document.data
    assert "a" not in data["cluster"]["settings"]
    bare = PARENT.replace(", settings: {num.io.threads: 3, replica.lag.time.max.ms: 1500}", "")
    (tmp_path / "parent.yaml").write_text(bare)
    scenario = load_scenario(tmp_path / "child.yaml", [])
    assert scenario.document.data["cluster"]["settings"] == {}


def test_a_flag_lies_over_what_is_extended(tmp_path: Path) -> None:
    _loaded(tmp_path, CHILD)
    given_flags = flag_overrides({"rate": 9, "set": ["rate=7"]})
    scenario = load_scenario(tmp_path / "child.yaml", given_flags)
    assert scenario.document.data["workload"]["rate"] == 9


@pytest.mark.parametrize(
    ("old", "new", "chosen", "refusal"),
    [
        ("extends: parent.yaml", "extends: child.yaml", (), "child.yaml:1: extends: .* itself"),
        (
            "extends: parent.yaml",
            "extends: paren",
            (),
            "child.yaml:1: extends: no scenario 'paren'",
        ),
        ("extends: parent.yaml", "extends: [a]", (), "child.yaml:1: extends: expected a scenario"),
        ("name: child\n", "", (), "child.yaml:1: extends: .* its own 'name'"),
        ('"${rate}"', '"${rat}"', (), r"child.yaml:7: workload.rate: .* did you mean 'rate'"),
        ("rate: 300", "rate: null", (), "child.yaml:4: parameters.rate: it has no default"),
        ("rate: 300", "rate: 300, more: 1", (), "parameters.more: the scenario does not use"),
        ("{rate: 300, faults: [kill, pause]}", "3", (), "parameters: expected names with defaults"),
        ("rate: 300, ", "rate: 300, x: '${rate}', ", (), r"parameters.x: its value .* must not"),
        ("", "", ("rate=fast",), "--set rate: 'fast' is text; its default, 300, is a number"),
        ("", "", ("rats=3",), "--set rats: .*no parameter 'rats'; did you mean 'rate'"),
        ("", "", ("rate",), "write --set NAME=VALUE"),
        ("", "", ("rate=3", "rate=4"), "--set rate: it is given twice"),
        ("", "", ("rate=[",), "--set rate: .* is not YAML"),
    ],
)
def test_what_cannot_be_is_refused_at_its_place(
    tmp_path: Path, old: str, new: str, chosen: tuple[str, ...], refusal: str
) -> None:
    with pytest.raises(UsageError, match=refusal):
        _loaded(tmp_path, CHILD.replace(old, new, 1), *chosen)


def test_a_mistake_is_told_in_the_file_that_has_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"parent.yaml:6: time_limit"):
        _loaded(tmp_path, CHILD, parent=PARENT.replace("20s", "soon"))
    with pytest.raises(UsageError, match=r"child.yaml:5: cluster.settings"):
        _loaded(tmp_path, CHILD.replace("num.io.threads: 5", "num.io.threads: [5]"))


def test_a_long_chain_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s0.yaml").write_text(PARENT)
    for number in range(1, 10):
        text = f"extends: s{number - 1}.yaml\nname: s{number}\n"
        (tmp_path / f"s{number}.yaml").write_text(text)
    assert load_scenario(tmp_path / "s7.yaml", []).name == "s7"
    with pytest.raises(UsageError, match="more than 8 scenarios extend one another"):
        load_scenario(tmp_path / "s9.yaml", [])


def test_a_required_parameter_is_filled_in(tmp_path: Path) -> None:
    child = CHILD.replace("rate: 300", "rate: null")
    assert _loaded(tmp_path, child, "rate=5").document.data["workload"]["rate"] == 5


@given(st.integers() | st.booleans() | st.lists(st.integers() | st.text("ab: [n0", max_size=6)))
@example("600")
@example("on")
@example("a: b")
@example("kill")
def test_a_value_is_read_from_the_text_that_a_repeat_line_has(value: object) -> None:
    assert chosen_values([f"name={as_value(value)}"]) == {"name": value}


def test_a_date_is_text(tmp_path: Path) -> None:
    child = CHILD.replace("rate: 300,", "rate: 300, day: soon,").replace(
        "title: ", "title: ${day} "
    )
    made = _loaded(tmp_path, child, "day=2026-11-29")
    assert made.title.startswith("2026-11-29 300 records")
    assert made.parameters == {"day": "2026-11-29"}
    assert chosen_values(["days=[2026-11-29, 2026-11-30T08:00:00Z]"]) == {
        "days": ["2026-11-29", "2026-11-30T08:00:00Z"]
    }
    child = child.replace("day: soon", "day: 2026-11-29")
    assert _loaded(tmp_path, child).title.startswith("2026-11-29 300 records")


@pytest.mark.parametrize("nothing", ["null", "~", ""])
def test_null_is_no_value_of_a_parameter(tmp_path: Path, nothing: str) -> None:
    with pytest.raises(
        UsageError, match=r"--set rate: .* is not a value: leave --set out for the def"
    ):
        _loaded(tmp_path, CHILD, f"rate={nothing}")


def test_a_map_does_not_take_the_place_of_a_list_unseen(tmp_path: Path) -> None:
    parent = PARENT.replace("workload: {", "workload: [{").replace("assign}", "assign}]")
    with pytest.raises(
        UsageError, match=r"child.yaml:7: workload: .* has a list here, which a map"
    ):
        _loaded(tmp_path, CHILD, parent=parent)
    whole = CHILD.replace('{rate: "${rate}"}', '[{kind: produce-poll, rate: "${rate}"}]')
    assert _loaded(tmp_path, whole, parent=parent).workload.rate == 300


def test_what_was_filled_in_goes_with_the_run(tmp_path: Path) -> None:
    made = _loaded(tmp_path, CHILD, "rate=7", "faults=[pause]")
    assert made.parameters == {"rate": "7", "faults": "[pause]"}
    assert _loaded(tmp_path, CHILD).parameters == {}
