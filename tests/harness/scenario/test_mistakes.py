"""All that is wrong with a scenario is said at once, and nothing that is wrong because of that."""

from pathlib import Path

import pytest

from fencepost.harness.cli.main import main
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.history.failure import UsageError

HEAD = """\
name: many
cluster: {kafka: 3.9.2, brokers: 3}
topics: [{name: t, partitions: 2}]
workload: {kind: produce-poll, rate: 500}
"""

FIVE = """\
name: many
titel: Five mistakes
cluster: {kafka: 3.9.2, brokers: three}
topics: [{name: t, partitions: 2}]
workload: {kind: produce-poll, rate: 500}
play:
  - explode: broker-1
  - wipe: broker-2
  - start: broker-2
expect:
  - {kafka: ">=3.5", invalid: [lost-rite]}
"""


def refused(tmp_path: Path, text: str, *flags: tuple[tuple[str, ...], object, str]) -> list[str]:
    """The mistakes of such a scenario, each from its line on."""
    path = tmp_path / "many.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_scenario(path, flags)
    return [line.removeprefix(f"{path}:") for line in str(caught.value).splitlines()]


def test_five_mistakes_are_five_lines_in_the_order_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "five.yaml"
    path.write_text(FIVE)
    with pytest.raises(SystemExit) as ended:
        main(["run", str(path), "--results", str(tmp_path / "results")])
    assert ended.value.code == 254
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    expected = (
        "2: titel: unknown key 'titel'; did you mean 'title'?",
        "3: cluster.brokers: Input should be a valid integer",
        "7: play[0].explode: unknown word 'explode'; allowed: ",
        "8: play[1].wipe: broker-2 is up at this step; kill or stop it first",
        "11: expect[0].invalid[0]: unknown anomaly 'lost-rite'; did you mean 'lost-write'?",
    )
    assert len(lines) == len(expected), err
    for line, start in zip(lines, expected, strict=True):
        assert line.startswith(f"fencepost: {path}:{start}")
    assert not (tmp_path / "results").exists()


def test_flags_come_before_the_lines_of_the_file(tmp_path: Path) -> None:
    text = HEAD.replace("rate: 500", "rte: 500")
    flag = (("time_limit",), "soon", "--time-limit")
    of_flag, of_file = refused(tmp_path, text, flag)
    assert of_flag.startswith("--time-limit: time_limit: 'soon' is not a duration")
    assert of_file.startswith("4: workload.rte: unknown key 'rte'")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # What is misspelt is not missing, too.
        (HEAD.replace("topics", "topcis"), "3: topcis: unknown key 'topcis'"),
        (HEAD.replace("name: t,", "nam: t,"), "3: topics[0].nam: unknown key 'nam'"),
        (HEAD + "expect: [{vald: true}]\n", "5: expect[0].vald: unknown key 'vald'"),
        # A node or a partition of something that cannot be read may well be there.
        (
            HEAD.replace("brokers: 3", "brokers: three") + "play: [{kill: broker-7}]\n",
            "2: cluster.brokers: Input should be a valid integer",
        ),
        (
            HEAD.replace("partitions: 2", "partitions: 0")
            + "play:\n  - kill: leader of u-7\n  - move_leader: {u-1: 2}\n",
            "3: topics[0].partitions: expected 1 to 10000 partitions, found 0",
        ),
        # Of what a step that cannot be read may have done, nothing is held against later ones.
        (
            HEAD + "play:\n  - kil: broker-1\n  - wipe: broker-1\n  - start: broker-1\n",
            "6: play[0].kil: unknown word 'kil'",
        ),
        (
            HEAD + "play:\n  - hold: {as: h, api: Fetsh}\n  - await: {held: h}\n  - release: h\n",
            "6: play[0].hold.api: unknown API 'Fetsh'",
        ),
        (
            HEAD + "play:\n  - {snapshot: broker-1, az: a}\n  - kill: broker-1\n"
            "  - {rollback: broker-1, to: a}\n",
            "6: play[0].az: 'az' does not go with 'snapshot'",
        ),
        # A step that cannot follow on the others is one mistake, in a loop as well.
        (
            HEAD + "play:\n  - repeat: 3\n    steps: [{resume: broker-1}, {kill: broker-2}, "
            "{start: broker-2}]\n",
            "7: play[0].steps[0].resume: broker-1 is up at this step",
        ),
        (
            HEAD + "play: [{kil: broker-1}]\nrequire: {faults: [pause]}\n",
            "5: play[0].kil: unknown word 'kil'",
        ),
    ],
)
def test_one_mistake_brings_no_others_with_it(tmp_path: Path, text: str, found: str) -> None:
    (line,) = refused(tmp_path, text)
    assert line.startswith(found)


def test_each_entry_is_read_although_others_cannot_be(tmp_path: Path) -> None:
    text = """\
name: Many
cluster: {kafka: 3.9, controllers: 2, spare_brokers: 9, settings: high}
topics:
  - {name: t, partitions: none, replication_factor: many}
  - {name: t, partitions: 0, settings: [1]}
workload:
  - {kind: produce-poll, rate: fast, acks: some}
  - {kind: metadta}
nemesis: {faults: [kil, pause, pose], targets: [broker-x], gap: [2s, 1s], down: {brokers: -1}}
recovery_limit: 0s
require: {faults: [kil], judged: [lost]}
expect: [{kafka: old, valid: maybe}, {level: ">=1", valid: true, tried: [1]}]
"""
    lines = [line.partition(": ")[2].partition(":")[0] for line in refused(tmp_path, text)]
    assert lines == [
        "name",
        *("cluster.kafka", "cluster.settings", "cluster.controllers", "cluster.spare_brokers"),
        *("topics[0].partitions", "topics[0].replication_factor"),
        *("topics[1].settings", "topics[1].partitions"),
        *("workload[0].rate", "workload[0].acks", "workload[1].kind"),
        *("nemesis.faults[0]", "nemesis.faults[2]", "nemesis.targets[0]", "nemesis.gap"),
        "nemesis.down.brokers",
        "recovery_limit",
        *("require.faults[0]", "require.judged[0]"),
        *(
            "expect[0].kafka",
            "expect[0].valid",
            "expect[1].level",
            "expect[1].tried[0]",
        ),
    ]
