"""The generated parts of the pages of the reference cluster: tables of rules and state diagrams.

`python -m fencepost.clusters.reference.pages` writes each anew between its markers; the rest of the
pages is written by hand.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.life_cycle_transitions import TRANSITIONS as OF_BROKERS
from fencepost.clusters.reference.nodes.quorum.transitions import TRANSITIONS as OF_VOTERS
from fencepost.clusters.reference.nodes.quorum.transitions import VoterState
from fencepost.clusters.reference.nodes.rules import RULES, ProtocolRule
from fencepost.clusters.reference.zk.life_cycle_transitions import TRANSITIONS as OF_ZK_BROKERS
from fencepost.clusters.reference.zk.rules import ZK_RULES
from fencepost.history.failure import UsageError

_DOCS: Final = Path(__file__).resolve().parents[2] / "docs"
_ANY: Final = "any"

_Edge = tuple[str, str, str]
"""(from, to, by what)."""


def rules_table() -> str:
    """Return every rule with its switch, in the order of the table in the code."""
    rows = (_row(f"`{one.name}`", one.says, one.prevents, one.source) for one in RULES)
    return _lines(["| rule | says | without it | source |", "|---|---|---|---|", *rows])


def evidence_table() -> str:
    """Return, by rule, the anomalies of a cluster without it, and where they can occur at all."""
    head = ["| rule | anomalies without it | levels | switched off with it |", "|---|---|---|---|"]
    return _lines([*head, *(_evidence(rule) for rule in RULES)])


def broker_diagram() -> str:
    """The life of a broker, states by the names and numbers that heartbeats carry."""
    names = [f"{state.name} : {state.name} ({state.value})" for state in BrokerState]
    edges = [(a.name, b.name, trigger.value) for (a, trigger), b in OF_BROKERS.items()]
    return _diagram(names, start=BrokerState.NOT_RUNNING.name, edges=edges)


def zk_broker_diagram() -> str:
    """The life of a broker of the ZooKeeper generation."""
    edges = [(a.name, b.name, trigger.value) for (a, trigger), b in OF_ZK_BROKERS.items()]
    return _diagram((), start=BrokerState.NOT_RUNNING.name, edges=edges)


def voter_diagram() -> str:
    """The states of a voter; what happens in all of them alike is drawn once."""
    edges = [(a.value, b.value, event.value) for (a, event), b in OF_VOTERS.items()]
    every = len(VoterState)
    common = {
        edge[1:]: None for edge in edges if sum(edge[1:] == one[1:] for one in edges) == every
    }
    drawn = [(_ANY, *rest) for rest in common]
    drawn += [edge for edge in edges if edge[1:] not in common]
    return _diagram([f"{_ANY} : any state"], start=VoterState.UNATTACHED.value, edges=drawn)


def zk_rules_table() -> str:
    """Return the rules that the ZooKeeper generation alone has, with what shows without them."""
    rows = (
        _row(f"`{one.name}`", one.says, one.prevents, _codes(one.shows_as), one.source)
        for one in ZK_RULES
    )
    head = ["| rule | says | without it | anomalies | source |", "|---|---|---|---|---|"]
    return _lines([*head, *rows])


SECTIONS: Final[Mapping[str, Callable[[], str]]] = {
    "rules": rules_table,
    "evidence of rules": evidence_table,
    "states of a broker": broker_diagram,
    "states of a voter": voter_diagram,
}
"""The functions that write the text between the markers, by the markers' names."""
ZK_SECTIONS: Final[Mapping[str, Callable[[], str]]] = {
    "rules on ZooKeeper": zk_rules_table,
    "states of a broker on ZooKeeper": zk_broker_diagram,
}
"""Those of the page of the ZooKeeper generation."""
_PAGES: Final = {"reference-cluster.md": SECTIONS, "reference-zookeeper.md": ZK_SECTIONS}


def with_sections(page: str, sections: Mapping[str, Callable[[], str]] = SECTIONS) -> str:
    """The page with every section as the code has it. UsageError if a marker is missing."""
    for name, made in sections.items():
        begin = f"<!-- {name}: `make docs` writes it -->\n"
        end = f"<!-- end of {name} -->"
        before, found, rest = page.partition(begin)
        _, ended, after = rest.partition(end)
        if not found or not ended:
            raise UsageError(f"the page has no section {name!r}; expected {begin!r} and {end!r}")
        page = f"{before}{begin}{made()}{end}{after}"
    return page


def _evidence(rule: ProtocolRule) -> str:
    low, high = rule.level_min, rule.level_max
    levels = str(low) if low == high else f"{low} to {high}"
    return _row(f"`{rule.name}`", _codes(rule.shows_as), levels, _codes(rule.beside))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _diagram(names: Iterable[str], *, start: str, edges: Iterable[_Edge]) -> str:
    by_ends: dict[tuple[str, str], list[str]] = {}
    for source, target, what in edges:
        by_ends.setdefault((source, target), []).append(what)
    return _lines(["```mermaid", "stateDiagram-v2", *_indented(names, start, by_ends), "```"])


def _indented(
    names: Iterable[str], start: str, by_ends: Mapping[tuple[str, str], list[str]]
) -> Iterator[str]:
    yield from (f"    {name}" for name in names)
    yield f"    [*] --> {start}"
    for (source, target), what in by_ends.items():
        yield f"    {source} --> {target} : {' / '.join(what)}"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    for _name, _sections in _PAGES.items():
        _page = _DOCS / _name
        _text = with_sections(_page.read_text(encoding="utf-8"), _sections)
        _page.write_text(_text, encoding="utf-8")
        sys.stdout.write(f"{_page}\n")
