"""The messages between the harness and the proxy's process: JSON, one message a line.

Requests are `{"op": …, …}`, answered in their order by `{"answer": …}` or `{"error": …}`.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import NodeName
from fencepost.nemesis.wire import rules
from fencepost.nemesis.wire.rules import (
    Action,
    Clause,
    Direction,
    Flow,
    Link,
    Match,
    Operator,
    Rule,
)
from fencepost.nemesis.wire.status import RuleStatus, WireStatus

_ACTIONS: Final[Mapping[str, Any]] = {
    kind.__name__: kind
    for kind in (
        rules.Answer,
        rules.Cut,
        rules.Delay,
        rules.Drop,
        rules.Duplicate,
        rules.Hold,
        rules.LowerVersion,
        rules.Reorder,
        rules.Stall,
        rules.Watch,
    )
}


def rule_data(rule: Rule) -> dict[str, Any]:
    """Return a rule for JSON."""
    return {
        "name": rule.name,
        "action": {"kind": type(rule.action).__name__, **asdict(rule.action)},
        "match": asdict(rule.match),
    }


def rule_of(data: Mapping[str, Any]) -> Rule:
    """Return the rule that it was."""
    action = dict(data["action"])
    made: Action = _ACTIONS[action.pop("kind")](**action)
    return Rule(name=data["name"], action=made, match=_match_of(data["match"]))


def link_data(link: Link) -> dict[str, Any]:
    """Return a link for JSON."""
    return asdict(link)


def link_of(data: Mapping[str, Any]) -> Link:
    """Return the link that it was."""
    return Link(**{**data, "protocol": LinkProtocol(data["protocol"])})


def flows_data(flows: Any) -> list[list[str]]:
    """Return flows, or pairs of nodes, for JSON."""
    return [list(flow) for flow in flows]


def flows_of(data: Any) -> tuple[Flow, ...]:
    """Return the flows that they were."""
    return tuple((NodeName(one), NodeName(other)) for one, other in data)


def status_data(status: WireStatus) -> dict[str, Any]:
    """Return a status for JSON, which has no pairs as keys."""
    return {
        **asdict(status),
        "withheld_bytes": [[*flow, count] for flow, count in status.withheld_bytes.items()],
        "connection_count": [[*pair, count] for pair, count in status.connection_count.items()],
    }


def status_of(data: Mapping[str, Any]) -> WireStatus:
    """Return the status that it was."""
    return WireStatus(
        rules={name: RuleStatus(**rule) for name, rule in data["rules"].items()},
        withheld_bytes=_counts(data["withheld_bytes"]),
        connection_count=_counts(data["connection_count"]),
        broken=tuple(data["broken"]),
        broken_count=data["broken_count"],
        cpu_s=data["cpu_s"],
    )


def _counts(data: Any) -> dict[Flow, int]:
    return {(NodeName(one), NodeName(other)): count for one, other, count in data}


def _match_of(data: Mapping[str, Any]) -> Match:
    return Match(
        **{
            **data,
            "direction": Direction(data["direction"]),
            "sources": tuple(data["sources"]),
            "targets": tuple(data["targets"]),
            "where": tuple(_clause_of(one) for one in data["where"]),
        }
    )


def _clause_of(data: Mapping[str, Any]) -> Clause:
    value = data["value"]
    return Clause(
        field=data["field"],
        operator=Operator(data["operator"]),
        value=tuple(value) if isinstance(value, list) else value,
    )
