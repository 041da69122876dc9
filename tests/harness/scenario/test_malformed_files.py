"""A file that would take minutes, the memory or the stack is one line, and at once."""

import time
from pathlib import Path

import pytest

from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.yaml_file import load_document
from fencepost.history.failure import UsageError

HEAD = "name: n\ntopics: [{name: t}]\nworkload: {kind: produce-poll}\n"
BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]\n" for level in range(1, 10)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (HEAD + BOMB, "its aliases stand for more than 100,000 values"),
        (HEAD + "extra: &x {y: *x}\n", "f.yaml:4: a value that contains itself"),
        (HEAD + "play: [&a {kill: *a}]\n", "f.yaml:4: a value that contains itself"),
        (HEAD + f"extra: {'[' * 45}{']' * 45}\n", "f.yaml:4: more than 40 deep"),
        (HEAD + "extra: " + "[" * 10_000 + "\n", "f.yaml:4: "),
        (HEAD + "extra: [" + "1," * 1_500_000 + "]\n", "f.yaml:4: more than 100,000 values"),
        (HEAD + "#" * (5 << 20) + "\n", "f.yaml: larger than 4 MiB"),
        (HEAD + "cluster: {brokers: " + "9" * 5000 + "}\n", "f.yaml:4: not YAML: not a number"),
        (HEAD + "x: 1_000e999_\n", "f.yaml:4: x: unknown key"),
        (HEAD.replace("name: n", "name: 2001-99-99") + "x: 1\n", "f.yaml:4: x: unknown key"),
        (HEAD.replace("name: n", f"name: {'n' * 300}"), "100 at most, found 'nnn"),
        (HEAD + "cluster: {brokers: true}\n", "cluster.brokers: expected a number, found true"),
        (HEAD + "time_limit: 99999999999999999999h\n", "is longer than 30 days"),
        (
            HEAD + "cluster: {metadata_version: banana}\n",
            "cluster.metadata_version: expected 3.9 or 3.9-IV0",
        ),
        (HEAD + "cluster: {brokers: '" + "9" * 100_000 + "'}\n", "cluster.brokers: "),
    ],
    ids=[
        *("aliases", "cycle", "cycle-in-play", "deep", "deeper", "long-list", "large"),
        *("digits", "float", "date", "long-name", "truth", "forever", "level", "long-text"),
    ],
)
def test_a_malformed_file_is_one_line_at_once(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "f.yaml"
    path.write_text(text)
    began_s = time.process_time()
    with pytest.raises(UsageError) as refused:
        load_scenario(path, [])
    assert time.process_time() - began_s < 2
    (line,) = str(refused.value).splitlines()
    assert says in line
    assert len(line) < 3000


def test_dates_are_texts_and_anchors_may_be_used_again(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_text("a: 2001-01-01\nb: &b {c: [1, 2.5]}\nd: *b\ne: {<<: *b, f: true}\n")
    document = load_document(path)
    assert document.data == {
        "a": "2001-01-01",
        "b": {"c": [1, 2.5]},
        "d": {"c": [1, 2.5]},
        "e": {"c": [1, 2.5], "f": True},
    }
    assert document.place(("d", "c", 1)) == f"{path}:2"
