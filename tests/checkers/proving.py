"""What a proof rests on: its rule, by a few words of it, and its facts by name.

Times and durations are in ms, as in the tests' small language; moments are in ns, as they stand.
"""

import re
from collections.abc import Mapping

from fencepost.checkers.anomaly import Anomaly, Found, anomalies_of
from fencepost.checkers.proof import NAMED, Fact, FactKind, Proof

_NS_A_MS = 1_000_000
_TIMES = (FactKind.TIME, FactKind.DURATION)
_CITED = (
    FactKind.OPERATION,
    FactKind.OFFSET,
    FactKind.METADATA_OFFSET,
    FactKind.VALUE,
    FactKind.FRAME,
)
"""Kinds whose facts may stand beside the sentence, for a reader to look up."""
_QUOTED = ("text", "data", "detail")
"""What a node wrote, a znode holds, and what a record of the metadata log says."""
_NAME_OR_LIST = re.compile(r"\S+|[\[{].*[\]}]|\S+(, \S+)*", re.DOTALL)


def assert_proof(proof: Proof | Anomaly, rule: str, /, **facts: object) -> None:
    """These words are in the rule, and these facts are what it rests on, whatever else is."""
    told = proof.proof if isinstance(proof, Anomaly) else proof
    assert rule in told.rule, told.rule
    found = facts_of_proof(told)
    assert {name: found.get(name) for name in facts} == facts, found
    assert_told(told)


def assert_told(proof: Proof) -> None:
    """The rule says every fact but such as are looked up, and no fact has others in its words."""
    said = NAMED.findall(proof.rule)
    for fact in proof.facts:
        assert fact.name in said or fact.kind in _CITED, f"{fact} is not said: {proof.rule}"
        if fact.kind is FactKind.WORD and not fact.name.endswith(_QUOTED):
            phrase = not _NAME_OR_LIST.fullmatch(str(fact.value))
            assert not (phrase and re.search(r"\d", str(fact.value))), f"{fact} has facts in it"
    proof.sentence  # noqa: B018  # every name in the rule is a fact's


def facts_of_proof(proof: Proof) -> dict[str, object]:
    """The facts: values by name, and a list of several values of one name."""
    found: dict[str, list[object]] = {}
    for fact in proof.facts:
        values = found.setdefault(fact.name, [])
        if _value(fact) not in values:
            values.append(_value(fact))
    return {name: values if values[1:] else values[0] for name, values in found.items()}


def proofs_in(found: Found) -> list[Proof]:
    """The proofs of what was found on a key, in order."""
    return [anomaly.proof for anomaly in anomalies_of(found.table)]


def source_of(proof: Proof, name: str) -> str:
    """The source of the fact of this name."""
    return next(fact.source for fact in proof.facts if fact.name == name)


def cycle_class(proof: Proof) -> str:
    """The class of the cycle that it proves, "G1c-realtime"."""
    return f"{proof.fact('kind')}{proof.fact('suffix')}"


def only(proofs: Mapping[str, list[Proof]], key: str) -> Proof:
    """The only proof, which is of this key."""
    assert list(proofs) == [key]
    (proof,) = proofs[key]
    return proof


def _value(fact: Fact) -> object:
    return int(fact.value) / _NS_A_MS if fact.kind in _TIMES else fact.value
