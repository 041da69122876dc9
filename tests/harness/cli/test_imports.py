"""What refuses or explains itself imports little: a second of a slow core is 300 modules or so."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.checkers import SECTIONS
from bench.command import CHECKER_SECTIONS, SIMULATOR_SECTIONS
from bench.simulator import SECTIONS as SIMULATOR_PARTS
from harness.cli.main import cli

HEAVY = {"bokeh", "confluent_kafka", "cryptography", "docker", "networkx", "pandas", "paramiko"} | {
    *("pyspark", "requests", "scipy")
}
MISTAKEN = """\
name: mistaken
cluster: {brokers: three}
topics: [{name: t}]
workload: {kind: produce-poll}
play: [{explode: broker-1}, {wipe: broker-2}]
"""
PROGRAM = """\
import sys
from harness.cli.main import main
try:
    main(sys.argv[1:])
finally:
    tops = {name.partition(".")[0] for name in sys.modules}
    # What a test's environment adds to a library of ours is none of it.
    counted = [name for name in sys.modules if name.partition(".")[0] != "hypothesis"]
    print("modules", len(counted), *sorted(tops), file=sys.stderr)
"""


def imported(tmp_path: Path, *arguments: str) -> tuple[int, str, int, set[str]]:
    """Exit code, words on standard error, how many modules were imported, and of what."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(Path(__file__).parents[3]), "HOME": str(tmp_path)},
    )
    said, _, counted = ended.stderr.rpartition("modules ")
    count, *tops = counted.split()
    return ended.returncode, said, int(count), set(tops)


def test_every_command_explains_itself_at_once(tmp_path: Path) -> None:
    code, _, count, tops = imported(tmp_path, "--help")
    # It imports every command's flags.
    assert code == 0
    assert count < 380
    assert not HEAVY & tops


@pytest.mark.parametrize("command", cli.list_commands(None))  # type: ignore[arg-type]  # unused
def test_a_command_explains_itself_at_once(tmp_path: Path, command: str) -> None:
    code, _, count, tops = imported(tmp_path, command, "--help")
    assert code == 0
    assert count < 300
    assert not HEAVY & tops


@pytest.mark.parametrize(
    ("line", "says", "count_max"),
    [
        ("nosuch", "No such command", 140),
        ("run nosuch", "no scenario 'nosuch'", 300),
        ("run smoke --nosuch", "No such option '--nosuch'", 300),
        ("run smoke --runs many", "'many' is not a valid integer", 300),
        ("reproduce nosuch", "no scenario 'nosuch'", 300),
        ("simulate nosuch", "no scenario 'nosuch'", 300),
        ("scenarios nosuch", "no scenario 'nosuch'", 300),
        ("check nosuch", "no run 'nosuch'", 300),
        ("replay nosuch", "no run 'nosuch'", 300),
        ("report nosuch", "no run 'nosuch'", 300),
        ("report --window x", "'x' is not a duration", 300),
        ("history export nosuch x --format edn", "no run 'nosuch'", 300),
        # With the language of scenarios.
        ("run mistaken.yaml", "mistaken.yaml:5: play[1].wipe: broker-2 is up at this step", 675),
        ("run smoke --time-limit soon", "'soon' is not a duration", 675),
        ("run smoke --nemesis explode", "unknown fault 'explode'", 675),
        # With what is prepared.
        ("run smoke --cluster simulated --host netns", "are no processes", 740),
        ("run smoke --cluster kafka --without-rule one_vote", "is for our own nodes", 740),
        ("run smoke --cluster reference --without-rule no", "there is no such rule", 740),
        ("run smoke --cluster kafka --kafka 2.8.0", "is too old to run without ZooKeeper", 740),
        ("run smoke --cluster kafka --kafka path:no", "expected an unpacked distribution", 740),
        # With a cluster's class, which says what can be done to it.
        ("run smoke --cluster simulated --nemesis squeeze", "lacks the ability Squeezes", 1110),
        ("run kip-903 --cluster reference --no-wire", "it takes the proxy on the links", 1110),
    ],
)
def test_a_refusal_imports_no_more_than_it_takes(
    tmp_path: Path, line: str, says: str, count_max: int
) -> None:
    (tmp_path / "mistaken.yaml").write_text(MISTAKEN)
    code, said, count, tops = imported(tmp_path, *line.split())
    assert code == 254, said
    assert says in said
    assert count < count_max
    assert not HEAVY & tops
    assert not (tmp_path / "results").exists()


def test_sections_of_benches_are_named_without_them() -> None:
    assert tuple(SECTIONS) == CHECKER_SECTIONS
    assert tuple(SIMULATOR_PARTS) == SIMULATOR_SECTIONS
