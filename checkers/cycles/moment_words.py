"""Cycles of Kafka's transactions as proofs."""

from collections.abc import Sequence

from checkers.cycles.edges import EdgeKind
from checkers.cycles.moments import Committed, KeyTransactions, Moments
from checkers.cycles.oddity import Oddity
from checkers.cycles.shortest import Cycle, CycleEdge
from checkers.proof import Proof
from history.models import Isolation

__all__ = ["spelled_interleaving", "spelled_moments"]

_SUFFIX = ("", "", "", "-process", "-realtime")


def spelled_moments(
    cycle: Cycle, moments: Moments, *, committed: Committed, keys: Sequence[KeyTransactions]
) -> Oddity:
    """Return a cycle of moments, which is impossible."""
    words = _Words(moments, committed, keys)
    links = [link for link in cycle.links if link.kind is not EdgeKind.FREE]
    places = [link.source for link in cycle.links]
    runs = [place for place in places if moments.key[place] >= 0]
    operations = [int(moments.operation[place]) for place in places]
    return Oddity(
        key=keys[int(moments.key[runs[0]])].key if runs else "",
        level=Isolation.STRICT_SERIALIZABLE,
        proof=Proof.of(
            "{kind}{suffix}: {listed}",
            operations=tuple(dict.fromkeys(one for one in operations if one >= 0)),
            values=tuple(int(moments.value[place]) for place in runs),
            kind=cycle.kind,
            suffix=_SUFFIX[cycle.order],
            listed="; ".join(map(words.of, links)),
        ),
    )


class _Words:
    def __init__(
        self, moments: Moments, committed: Committed, keys: Sequence[KeyTransactions]
    ) -> None:
        self._moments = moments
        self._committed = committed
        self._keys = keys

    def of(self, link: CycleEdge) -> str:
        source, target = self._name(link.source), self._name(link.target)
        match link.kind:
            case EdgeKind.WW:
                key = self._keys[int(self._moments.key[link.target])].key
                before, value = (
                    int(self._moments.value[one]) for one in (link.source, link.target)
                )
                return (
                    f"in {key} the records of {target} from value {value} on stand after those "
                    f"of {source} from value {before} on"
                )
            case EdgeKind.WR:
                return f"{target} read of {source}, which had to be committed first"
            case EdgeKind.PROCESS:
                return f"{target} began after {source} in one process"
            case _:
                return f"{source} had ended before {target} {self._begun(link.target)}"

    def _name(self, place: int) -> str:
        transaction = int(self._moments.transaction[place])
        if transaction < 0:
            return f"operation {int(self._moments.operation[place])}"
        return f"transaction {int(self._committed.index[transaction])}"

    def _begun(self, place: int) -> str:
        if self._moments.key[place] >= 0:
            return "began"
        return "was called" if self._moments.transaction[place] < 0 else "was to be committed"


def spelled_interleaving(
    cycle: Cycle, *, committed: Committed, keys: Sequence[KeyTransactions]
) -> Oddity:
    """Return a cycle of whole transactions by ww, which is legal."""
    steps, values, names, operations = [], [], [], []
    for link in cycle.links:
        for key in keys:
            pair = (key.run[:-1] == link.source) & (key.run[1:] == link.target)
            if pair.any():
                place = int(pair.argmax())
                names.append(key.key)
                values.append(int(key.run_value[place + 1]))
                operations.append(int(key.run_operation[place + 1]))
                source, target = (int(committed.index[end]) for end in (link.source, link.target))
                steps.append(f"{target} wrote to {key.key} after {source}")
                break
    return Oddity(
        key=names[0] if names else "",
        level=Isolation.READ_UNCOMMITTED,
        proof=Proof.of(
            "G0, legal in Kafka: transactions were open at the same time and interleave: "
            "{listed} (one component of {transactions} transactions)",
            operations=tuple(dict.fromkeys(operations)),
            values=tuple(values),
            listed="; ".join(steps),
            transactions=cycle.transactions,
        ),
    )
