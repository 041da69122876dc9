"""Every rule in the source of a check says the facts that it is given, and is given what it says.

Rules are read from the calls that make proofs. What comes from elsewhere (a part of the rule, the
facts of a clause) is held to the same when it has come together: see `proving.assert_told`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencepost import checkers
from fencepost.checkers.proof import NAMED, Proof

ROOT = Path(checkers.__path__[0])
TESTS = Path(__file__).parent
OF_THE_RENDERER = {
    "conftest.py",
    "proving.py",
    "test_proof.py",
    "test_rules.py",
    "test_sentences.py",
}
CITED = {"operations", "offsets", "metadata_offsets", "values", "frames"}
"""Kinds whose facts may stand beside the sentence, for a reader to look up."""
KINDS = CITED | {"times", "durations", "moments", "zookeeper_ids"}


def calls(source: str) -> Iterator[ast.Call]:
    """The calls of `Proof.of` and `further` that spell out the whole rule."""
    for one in ast.walk(ast.parse(source)):
        match one:
            case ast.Call(
                func=ast.Attribute(attr="further")
                | ast.Attribute(attr="of", value=ast.Name(id="Proof")),
                args=[rule],
            ) if not any(isinstance(part, ast.Name) for part in ast.walk(rule)):
                yield one


def mistakes(call: ast.Call) -> Iterator[str]:
    """What the rule does not say, and what is not given to it."""
    texts = [one.value for one in ast.walk(call.args[0]) if isinstance(one, ast.Constant)]
    said = {name for text in texts if isinstance(text, str) for name in NAMED.findall(text)}
    named = {one.arg: one.value for one in call.keywords if one.arg is not None}
    plain = named.keys() - KINDS - {"sources"}
    of_kinds = {kind: keys(named[kind]) for kind in KINDS & named.keys()}
    told = plain.union(*(of_kinds[kind] for kind in of_kinds.keys() - CITED))
    yield from (f"{name} is not said" for name in told - said)
    elsewhere = plain or len(named) < len(call.keywords)  # A clause, or facts by another name.
    if not elsewhere and not any(isinstance(one, ast.Name) for one in named.values()):
        yield from (f"{name} is not given" for name in said.difference(*of_kinds.values()))


def keys(mapping: ast.expr) -> set[str]:
    """The names that are spelled out in a mapping."""
    dicts = [one for one in ast.walk(mapping) if isinstance(one, ast.Dict)]
    found = {key.value for one in dicts for key in one.keys if isinstance(key, ast.Constant)}
    return {str(name) for name in found}


def test_every_rule_says_its_facts_and_has_them() -> None:
    found = [
        (path.relative_to(ROOT).as_posix(), call)
        for path in sorted(ROOT.rglob("*.py"))
        for call in calls(path.read_text())
    ]
    assert len(found) > 100
    wrong = [f"{path}:{call.lineno}: {one}" for path, call in found for one in mistakes(call)]
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('Proof.of("it led at {at}", times={"at": 1}, node="b-1")', ["node is not said"]),
        ('Proof.of("it led", times={"at": 1}, operations={"send": 1})', ["at is not said"]),
        ('Proof.of("{node} led at {at}", times={"at": 1})', ["node is not given"]),
        ('Proof.of("{node} led at {at}", times={"at": 1}, node="b-1")', []),
        ('proof.further(" at {at}", values={"value": 1})', ["at is not given"]),
    ],
)
def test_a_fact_that_is_left_out_is_found(source: str, found: list[str]) -> None:
    (call,) = calls(source)
    assert list(mistakes(call)) == found


@pytest.mark.parametrize(
    "proof",
    [
        pytest.param(Proof.of("it led", node="broker-1"), id="a-word-that-is-not-said"),
        pytest.param(Proof.of("it led", times={"at": 1}), id="a-time-that-is-not-said"),
        pytest.param(Proof.of("it led {since}", since="for 3 s"), id="a-number-in-words"),
    ],
)
def test_no_test_of_a_check_stores_a_proof_that_hides_a_fact(proof: Proof) -> None:
    with pytest.raises(AssertionError, match=r"is not said|has facts in it"):
        proof.columns()
    Proof.of("{node} led", operations={"send": 3}, node="broker-1").columns()


def test_tests_of_checks_pin_facts_and_not_sentences() -> None:
    sentences = re.compile(r"\.(?:sentence|detail)\b|\[\"detail\"\]")
    assert not [
        f"{path.relative_to(TESTS)}:{number}: {line.strip()}"
        for path in sorted(TESTS.rglob("*.py"))
        if path.name not in OF_THE_RENDERER
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if sentences.search(line)
    ]
