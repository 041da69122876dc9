"""Packets between nodes, dropped by rules inside of the nodes' own network namespaces.

Each cut has two chains in our own table, `inet fencepost`: what it forbids a node to send is
dropped as it leaves, and what it forbids a node to hear is dropped as it arrives. Cuts that overlap
do not know of each other: a packet passes if no chain drops it. The rules go with the namespace.

Where a proxy stands on the link from s to t, the two talk with its address for that link: s by
dialling it, t since the proxy dials from it. So what is sent from s to t is, at either end, what is
addressed to or comes from the other's own address or one of the two links between them, whoever
dialled.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.inside import tool_in
from fencepost.clusters.hosts.tools import tool, tool_missing
from fencepost.history.failure import HarnessError

_TABLE: Final = "inet fencepost"
_NAMED: Final = (("in", "input", "saddr"), ("out", "output", "daddr"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """The addresses that one cut forbids one node: those not heard, and those that do not hear."""

    heard: frozenset[str] = frozenset()
    told: frozenset[str] = frozenset()


def drop_packets(namespace: Path, cut: str, forbidden: Forbidden) -> None:
    """Lay the rules of a cut, replacing those that it has. HarnessError if the kernel refuses."""
    tool_in(namespace, "nft", "-f", "-", text=rules_text(cut, forbidden))


def pass_packets(namespace: Path, cut: str) -> None:
    """Take the rules of a cut away, and see that they are gone."""
    lines = [f"flush chain {_TABLE} {cut}_{end}" for end, _, _ in _NAMED]
    lines += [f"delete chain {_TABLE} {cut}_{end}" for end, _, _ in _NAMED]
    tool_in(namespace, "nft", "-f", "-", text="\n".join(lines) + "\n")
    if cut in dropped_counts(namespace):
        raise HarnessError(f"{namespace}: the packet rules of {cut} were not removed")


def dropped_counts(namespace: Path) -> Mapping[str, int]:
    """Return the number of packets dropped, by the cut whose rules are laid."""
    listed = json.loads(tool_in(namespace, "nft", "--json", "list", "ruleset"))
    counts: dict[str, int] = {}
    for item in listed["nftables"]:
        rule = item.get("rule")
        if rule is None or f"{rule['family']} {rule['table']}" != _TABLE:
            continue
        cut = rule["chain"].rpartition("_")[0]
        packets = sum(part["counter"]["packets"] for part in rule["expr"] if "counter" in part)
        counts[cut] = counts.get(cut, 0) + packets
    return counts


def rules_text(cut: str, forbidden: Forbidden) -> str:
    """The rules of a cut, for `nft -f`: all of them or none is laid."""
    lines = [f"add table {_TABLE}"]
    for (end, hook, field), addresses in zip(
        _NAMED, (forbidden.heard, forbidden.told), strict=True
    ):
        chain = f"{_TABLE} {cut}_{end}"
        lines += [
            f"add chain {chain} {{ type filter hook {hook} priority 0; }}",
            f"flush chain {chain}",
            *_rules(chain, field, addresses),
        ]
    return "\n".join(lines) + "\n"


def why_no_rules() -> str | None:
    """Return why this machine cannot drop packets, with the way out; None if it can.

    Tried in a namespace that is gone when the trial is over. Assumes that there are namespaces.
    """
    if (missing := tool_missing("nft")) is not None:
        return f"there is no {missing} (install nftables)"
    text = rules_text("trial", Forbidden(heard=frozenset({"192.0.2.1"})))
    try:
        tool("unshare", "--net", "nft", "-f", "-", text=text)
    except HarnessError as error:
        return f"the kernel refuses packet rules: {error}"
    return None


def _rules(chain: str, field: str, addresses: Collection[str]) -> list[str]:
    if not addresses:
        return []
    listed = ", ".join(sorted(addresses))
    return [f"add rule {chain} ip {field} {{ {listed} }} counter drop"]
