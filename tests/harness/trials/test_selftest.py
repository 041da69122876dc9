"""Rules switched off, and the checks that find them out: each line of docs/selftest.md holds."""

from pathlib import Path

import pytest

from fencepost.checkers.catalogue import CATALOGUE
from fencepost.clusters.reference.nodes.rules import RULES
from fencepost.harness.cli.main import main
from fencepost.harness.trials.examples import STORM, Example
from fencepost.harness.trials.generations import GENERATIONS, KRAFT
from fencepost.harness.trials.selftest import Detection, attempted
from fencepost.harness.trials.selftest_page import examples_in, selftest_page

PAGE = Path(__file__).parents[3] / "docs/selftest.md"
LINES = examples_in(PAGE)


def test_the_page_names_each_rule_and_only_checks_that_there_are() -> None:
    tried = [rule.name for one in GENERATIONS.values() for rule in one.tried]
    assert [example.rule.name for example, _ in LINES] == tried
    assert KRAFT.tried == RULES
    named = {check for _, checks in LINES for check in checks}
    assert named <= {entry.name for entry in CATALOGUE}


@pytest.mark.parametrize(
    ("example", "checks"),
    [pytest.param(*line, id=line[0].rule.name, marks=pytest.mark.slow) for line in LINES],
)
def test_a_rule_switched_off_is_found_out_by_a_check(
    example: Example, checks: tuple[str, ...]
) -> None:
    """A storm by the oracle, too, which says of thousands of seeds which are worth a record."""
    attempt = attempted(example)
    assert checks[0] in attempt.found
    assert attempt.oracle or example.play != STORM


def test_a_rule_that_is_tried_again_gets_a_new_line_and_the_others_keep_theirs() -> None:
    rule = RULES[3]
    nothing = Detection(
        rule=rule, trial_count=8, hits=(), anomalies={}, crash_count=0, cpu_s=1.0, attempts=()
    )
    page = PAGE.read_text()
    again = selftest_page([nothing], before=page)
    rows = [line for line in again.splitlines() if line.startswith("| ")]
    changed = [line for line in rows if line not in page.splitlines()]
    assert changed == [f"| {rule.name} |  |  | 0 | **none** | 0/8 |  |"]
    assert len(rows) == len(LINES) + len(GENERATIONS)


def test_the_page_of_one_generation_keeps_the_other() -> None:
    assert selftest_page([], before=PAGE.read_text()) == PAGE.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--rule", "one_voot"],
            "--rule one_voot: kafka has no such rule; did you mean 'one_vote'",
        ),
        (["--rule", "id_sources_agree"], "--system reference-zookeeper has it"),
        (["--system", "reference-zookeeper", "--rule", "one_vote"], "--system kafka has it"),
        (
            ["--system", "reference-zookeeper", "--rule", "controller_epoch_fences_writes"],
            "no check can detect its absence: A controller is deposed",
        ),
        (["--system", "kafka-zookeeper"], "'kafka-zookeeper' is not one of"),
    ],
)
def test_a_rule_that_cannot_be_tried_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], says: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["selftest", *arguments])
    assert ended.value.code
    assert says in capsys.readouterr().err
