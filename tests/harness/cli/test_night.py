"""`fencepost night` as a user calls it; its runs answer at once, by a program in their place."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

MAIN = Path(__file__).with_name("night_main.py")
ROOT = Path(__file__).parents[3]
NIGHT = """\
name: few
entries:
  - scenario: smoke
    cluster: simulated
    with: [{}, {time_limit: 5s, no_require: true}]
    runs: 2
  - {scenario: kip-903-control, cluster: simulated, runs: 1}
"""


class Place:
    """A directory with a night's file, and the results beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.results = root / "results"
        self.write(NIGHT)
        self.answer({})

    def write(self, text: str) -> None:
        (self.root / "few.yaml").write_text(text)

    def answer(self, answers: dict[str, str]) -> None:
        """What the call of each number answers; `else`: the others."""
        (self.root / "answers.json").write_text(json.dumps(answers))

    def start(self, *words: str, file: str = "few.yaml") -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, str(MAIN), "night", file, *words],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), "FENCEPOST_RESULTS": str(self.results)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def night(self, *words: str, file: str = "few.yaml") -> tuple[int, str, str]:
        with self.start(*words, file=file) as process:
            out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def gate(self) -> int:
        words = [sys.executable, str(MAIN), "gate", "--results", str(self.results)]
        return subprocess.run(
            words, check=False, cwd=self.root, env={**os.environ, "PYTHONPATH": str(ROOT)}
        ).returncode

    @property
    def nights(self) -> list[Path]:
        return sorted((self.results / "nights/few").glob("*/night.json"))

    def stored(self, index: int = -1) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.nights[index].read_text())
        return found

    @property
    def calls(self) -> list[str]:
        path = self.root / "calls.txt"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_run_that_finds_what_its_scenario_expects_does_not_fail_the_night(place: Place) -> None:
    place.answer({"2": "invalid lost-write"})
    code, out, err = place.night("--fail-fast", "--stop-at-proof")
    assert code == 0, err
    assert out.splitlines()[-1].startswith("4 of 5 valid, 1 invalid as expected: lost-write")
    junit = ET.parse(place.nights[-1].parent / "junit.xml").getroot()
    (skipped,) = junit.iter("skipped")
    assert "as the scenario expects: " in skipped.get("message", "")
    assert not list(junit.iter("failure"))
    again = place.night("--only-failed", "latest")
    assert again[0] == 254
    assert place.gate() == 0
    place.answer({"6": "invalid lost-write stuck-isr", "7": "invalid lost-write"})
    assert place.night()[0] == 1
    assert place.gate() == 1
    assert len(list(ET.parse(place.nights[-1].parent / "junit.xml").getroot().iter("failure"))) == 1


def seeds(night: dict[str, Any]) -> list[int]:
    return [run["seed"] for run in night["runs"]]


def test_a_night_is_stored_as_others_read_it_and_sums_itself_up(place: Place) -> None:
    place.answer({"2": "invalid", "3": "unknown"})
    code, out, err = place.night("--seed", "7")
    assert code == 1, err
    stored = place.stored()
    assert set(stored) == {
        *("night", "file", "command", "started_at", "harness", "ended_at", "runs", "left_out")
    }
    assert (stored["night"], stored["file"], stored["left_out"]) == ("few", "few.yaml", [])
    assert stored["ended_at"]
    first = stored["runs"][0]
    assert set(first) == {
        *("entry", "scenario", "system", "cluster", "release", "host", "variant", "seed", "run"),
        *("verdict", "reason", "findings", "expected", "seconds"),
    }
    assert [run["verdict"] for run in stored["runs"]].count("valid") == 3
    (invalid,) = (run for run in stored["runs"] if run["verdict"] == "invalid")
    assert invalid["findings"] == [f"{invalid['scenario']}:lost-write"]
    last = out.splitlines()[-1]
    assert last.startswith("3 of 5 valid, 1 invalid: lost-write")
    assert "1 unknown: lost-write: it is unknown; no kill took effect in 2 runs" in last
    assert "had no case in any run: idle" in out
    # A line a run, and a few around them.
    assert len(out.splitlines()) < 15
    assert len(err.splitlines()) == len(stored["runs"]) + 1
    page = (place.nights[0].parent / "night.html").read_text()
    assert last.split(";")[0] in page


def test_entries_advance_evenly_and_cells_share_the_seeds_of_a_round(place: Place) -> None:
    place.night("--seed", "7")
    runs = [(run["entry"], run["variant"], run["seed"]) for run in place.stored()["runs"]]
    short = "--time-limit 5s --no-require"
    assert runs == [(0, "", 7), (1, "", 7), (0, short, 7), (0, "", 8), (0, short, 8)]


def test_seeds_go_on_from_night_to_night_and_a_seed_repeats_one(place: Place) -> None:
    place.night()
    place.night()
    first, second = place.stored(0), place.stored(1)
    assert not set(seeds(first)) & set(seeds(second))
    assert min(seeds(second)) == max(seeds(first)) + 1
    command = second["command"].split()
    assert command[:3] == ["fencepost", "night", "few.yaml"]
    place.night("--seed", command[command.index("--seed") + 1])
    assert seeds(place.stored(2)) == seeds(second)


def test_an_entry_fills_in_parameters(place: Place) -> None:
    own = "extends: smoke\nname: own\nparameters: {rate: 9}\nrecovery_limit: ${rate}s\n"
    (place.root / "own.yaml").write_text(own)
    entry = "{scenario: own.yaml, cluster: simulated, with: [{}, {set: {rate: 5}}], runs: 1}"
    place.write(f"name: few\nentries: [{entry}]\n")
    code, out, err = place.night("--dry-run", "--json")
    assert code == 0, err
    words = [cell["command"][5:] for cell in json.loads(out)["cells"]]
    assert words == [[], ["--set", "rate=5"]]
    place.write(f"name: few\nentries: [{entry.replace('rate: 5', 'rat: 5')}]\n")
    code, out, err = place.night("--dry-run")
    assert (code, out) == (254, "")
    assert "few.yaml:2: entries[0].with[1]: own.yaml: --set rat: own.yaml: no parameter" in err


def test_names_in_junit_tell_scenario_variant_and_seed_apart(place: Place) -> None:
    place.answer({"2": "invalid", "3": "die"})
    place.night("--seed", "7")
    root = ET.parse(place.nights[0].parent / "junit.xml").getroot()
    cases = [(one.get("classname"), one.get("name")) for one in root.iter("testcase")]
    assert len(cases) == len(set(cases)) == 5
    assert ("fencepost.smoke.simulated", "smoke on simulated, host local, seed 8") in cases
    assert sum(int(suite.get("failures", 0)) for suite in root) == len(list(root.iter("failure")))
    assert len(list(root.iter("failure"))) == 1
    assert len(list(root.iter("error"))) == 1


def test_a_night_killed_in_the_middle_of_a_run_goes_on_where_it_was(place: Place) -> None:
    place.answer({"3": "hang"})
    process = place.start("--seed", "7")
    wait_for(lambda: len(place.calls) == 3)
    child = child_of(process.pid)
    process.kill()
    process.communicate()
    wait_for(lambda: not Path(f"/proc/{child}").exists())
    before = place.stored()
    assert before["ended_at"] is None
    assert len(before["runs"]) == 2

    place.answer({})
    code, out, err = place.night("--resume", place.nights[0].parent.name)
    assert code == 0, err
    after = place.stored()
    assert after["runs"][:2] == before["runs"]
    assert [(run["variant"], run["seed"]) for run in after["runs"]] == [
        ("", 7),
        ("", 7),
        ("--time-limit 5s --no-require", 7),
        ("", 8),
        ("--time-limit 5s --no-require", 8),
    ]
    assert after["ended_at"]
    assert out.splitlines()[-1].startswith("5 of 5 valid")
    code, _, err = place.night("--resume", "latest")
    assert code == 254
    assert "has ended" in err


def test_a_new_night_names_the_unfinished_one(place: Place) -> None:
    place.answer({"1": "hang"})
    process = place.start()
    wait_for(lambda: len(place.calls) == 1)
    process.kill()
    process.communicate()
    place.answer({})
    _, _, err = place.night()
    (unfinished,) = (path.parent for path in place.nights[:1])
    assert f"fencepost night few.yaml --resume {unfinished.name} goes on with it" in err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_night_ends_its_run_and_says_how_it_goes_on(
    place: Place, number: signal.Signals
) -> None:
    place.answer({"2": "hang"})
    process = place.start()
    wait_for(lambda: len(place.calls) == 2)
    child = child_of(process.pid)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 255
    assert not Path(f"/proc/{child}").exists()
    assert "goes on with it" in err.splitlines()[-1]
    assert out.splitlines()[-1].startswith("1 of 1 valid")


def test_a_run_that_hangs_is_ended_by_its_bound_and_is_a_result(place: Place) -> None:
    place.write(NIGHT.replace("name: few", "name: few\nbound: 2s"))
    place.answer({"2": "hang"})
    code, _, err = place.night()
    assert code == 255, err
    failed = place.stored()["runs"][1]
    assert (failed["verdict"], failed["reason"]) == ("failed", "ended by its bound of 2.00 s")
    assert len(place.stored()["runs"]) == 5


def test_a_run_that_fails_says_why(place: Place) -> None:
    place.answer({"1": "die"})
    code, out, _ = place.night()
    assert code == 255
    assert place.stored()["runs"][0]["reason"] == "the cluster did not start"
    assert "1 failed: the cluster did not start" in out.splitlines()[-1]


def test_runs_that_all_fail_break_the_night_off(place: Place) -> None:
    place.write(NIGHT.replace("runs: 2", "runs: 20"))
    place.answer({"else": "die"})
    code, _, err = place.night()
    assert code == 255
    assert len(place.stored()["runs"]) == 5
    assert "5 runs in a row have failed" in err
    assert place.stored()["ended_at"] is None


@pytest.mark.parametrize(
    ("flag", "answer", "count"),
    [
        ("--fail-fast", "unknown", 2),
        ("--fail-fast", "invalid", 2),
        ("--stop-at-proof", "unknown", 5),
        ("--stop-at-proof", "invalid", 2),
    ],
)
def test_a_night_ends_early_if_it_is_told_to_and_says_what_it_left_out(
    place: Place, flag: str, answer: str, count: int
) -> None:
    place.answer({"2": answer})
    _, out, _ = place.night(flag)
    stored = place.stored()
    assert len(stored["runs"]) == count
    assert stored["ended_at"]
    left = sum(one["runs"] for one in stored["left_out"])
    assert left == 5 - count
    assert ("left out: " in out.splitlines()[-1]) is (count < 5)


def test_a_night_ends_with_its_time_and_says_what_it_left_out(place: Place) -> None:
    place.write(
        "name: few\ntime: 3s\nentries:\n"
        "  - {scenario: smoke, cluster: simulated, share: 0.5}\n"
        "  - {scenario: kip-903-control, cluster: simulated, runs: 9}\n"
    )
    place.answer({"else": "slow0.4"})
    _, out, _ = place.night()
    stored = place.stored()
    assert 3 <= len(stored["runs"]) <= 8
    assert {run["entry"] for run in stored["runs"]} == {0, 1}
    (left,) = stored["left_out"]
    done = sum(run["entry"] == 1 for run in stored["runs"])
    assert (left["runs"], left["reason"]) == (9 - done, "no time left of 3.00 s")
    assert "no time left" in out.splitlines()[-1]


def test_only_the_runs_that_failed_are_made_again(place: Place) -> None:
    place.answer({"2": "invalid", "4": "unknown"})
    place.night("--seed", "7")
    before = [run for run in place.stored()["runs"] if run["verdict"] != "valid"]
    place.answer({})
    code, _, err = place.night("--only-failed", "latest")
    assert code == 0, err
    again = place.stored()["runs"]
    assert [(r["scenario"], r["variant"], r["seed"]) for r in again] == [
        (r["scenario"], r["variant"], r["seed"]) for r in before
    ]
    code, _, err = place.night("--only-failed", "latest")
    assert code == 254
    assert "are valid" in err


def test_all_mistakes_are_told_at_once_with_their_lines(place: Place) -> None:
    (place.root / "own.yaml").write_text("name: own\nworkload: {kind: produce-pol}\n")
    place.write(
        "name: few\n"
        "tme: 8h\n"
        "entries:\n"
        "  - scenario: smok\n"
        "    releases: [4.3]\n"
        "  - scenario: smoke\n"
        "    cluster: simulatd\n"
        "    with: [{nemesis: kil}, {rte: 5}]\n"
        "  - scenario: own.yaml\n"
        "    share: 0.5\n"
    )
    code, _, err = place.night()
    assert code == 254
    for words in (
        "few.yaml:2: tme: unknown key 'tme'; did you mean 'time'?",
        "few.yaml:4: entries[0].scenario: no scenario 'smok': did you mean 'smoke'",
        "few.yaml:5: entries[0].releases: 4.3 is a number; quote it: '4.3'",
        "few.yaml:7: entries[1].cluster: unknown cluster 'simulatd'; did you mean 'simulated'?",
        "few.yaml:8: entries[1].with[1].rte: unknown key 'rte'; did you mean 'rate'?",
        "few.yaml:9: entries[2]: own.yaml: own.yaml:2: workload.kind: ",
        "few.yaml:10: entries[2].share: a share needs a 'time' of the night",
    ):
        assert words in err, err
    assert not place.results.exists()


def test_what_can_be_run_nowhere_is_a_mistake_with_its_place(place: Place) -> None:
    place.write("entries:\n  - {scenario: upgrade, cluster: simulated}\n")
    code, _, err = place.night()
    assert code == 254
    assert "few.yaml:2: " in err
    assert not place.calls


@pytest.mark.usefixtures("refused_at_once")
def test_a_second_night_is_refused_in_a_line(place: Place) -> None:
    place.answer({"1": "hang"})
    process = place.start()
    wait_for(lambda: len(place.calls) == 1)
    code, _, err = place.night()
    process.terminate()
    process.communicate(timeout=60)
    assert code == 254
    assert "another run is under way: night few" in err.splitlines()[-1]
    assert len(place.nights) == 1


def test_a_dry_run_starts_nothing(place: Place) -> None:
    code, out, err = place.night("--dry-run", "--seed", "7")
    assert code == 0, err
    assert "5 runs, from seed 7 on: fencepost night few.yaml --seed 7" in out
    assert not place.calls
    assert not place.results.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_a_full_disk_ends_the_night_with_a_line_and_loses_nothing(place: Place) -> None:
    place.results.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1100m", "tmpfs", str(place.results)]
    subprocess.run(mount, check=True)
    try:
        place.answer({"3": "until told"})
        process = place.start()
        wait_for(lambda: len(place.calls) == 3)
        filler = place.results / "filler"
        fill = f"dd if=/dev/zero of={shlex.quote(str(filler))} bs=1M 2>/dev/null"
        assert subprocess.run(["/bin/sh", "-c", fill], check=False).returncode != 0
        (place.root / "told").touch()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 255
        assert "No space left on device" in err
        assert len(place.stored()["runs"]) == 2
        filler.unlink()
        place.answer({})
        code, out, err = place.night("--resume", "latest")
        assert code == 0, err
        assert out.splitlines()[-1].startswith("5 of 5 valid")
    finally:
        subprocess.run(["umount", "-l", str(place.results)], check=True)


def test_results_that_cannot_be_written_are_refused_before_anything_starts(place: Place) -> None:
    place.results.write_text("a file")
    code, _, err = place.night()
    assert code in {254, 255}
    assert str(place.results) in err.splitlines()[-1]
    assert len(err.splitlines()) == 1
    assert not place.calls


def wait_for(holds: Any, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def child_of(pid: int) -> int:
    """The run that the night's warden started."""
    warden = children(pid)[0]
    wait_for(lambda: children(warden))
    return children(warden)[0]


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]
