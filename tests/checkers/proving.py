"""What a proof rests on: its rule, by a few words of it, and its facts by name.

Times and durations are in ms, as in the tests' small language.
"""

from collections.abc import Mapping

from checkers.anomaly import Anomaly
from checkers.proof import Fact, FactKind, Proof

__all__ = ["assert_proof", "cycle_class", "facts_of_proof", "only", "source_of"]

_NS_A_MS = 1_000_000
_TIMES = (FactKind.TIME, FactKind.DURATION)


def assert_proof(proof: Proof | Anomaly, rule: str, /, **facts: object) -> None:
    """These words are in the rule, and these facts are what it rests on, whatever else is."""
    told = proof.proof if isinstance(proof, Anomaly) else proof
    assert rule in told.rule
    found = facts_of_proof(told)
    assert {name: found.get(name, f"of {sorted(found)}") for name in facts} == facts
    told.sentence  # noqa: B018  # every name in the rule is a fact's


def facts_of_proof(proof: Proof) -> dict[str, object]:
    """The named facts: values by name. Of cited ones without a name, all values by kind."""
    found: dict[str, object] = {}
    for fact in proof.facts:
        found.setdefault(fact.name, _value(fact))
    return found


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
