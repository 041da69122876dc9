"""The status of a proxy: its rules, its withheld bytes and its connections."""

from collections.abc import Mapping
from dataclasses import dataclass

from fencepost.nemesis.wire.rules import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The fate of the frames that a rule held."""

    delivered: int
    undeliverable: int
    """Their receivers were gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleStatus:
    """The effects of a rule so far, also once it is removed."""

    matched_count: int
    held_count: int
    """All frames held so far, with those that were only delayed, and the connections that were
    stalled.
    """
    held_now: int
    delivered_count: int
    undeliverable_count: int
    first: str | None
    """The first frame, in one line: "AlterPartition v2 broker-1 → controller-1, t-0 isr [1, 2]"."""
    first_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireStatus:
    """The proxy at one moment."""

    rules: Mapping[str, RuleStatus]
    withheld_bytes: Mapping[Flow, int]
    """For each blocked flow, the bytes that wait for its end in the proxy and in its kernel's
    buffers.
    """
    connection_count: Mapping[Flow, int]
    """Open connections by (source, target); the source dialled."""
    broken: tuple[str, ...] = ()
    """Connections that were cut since they broke the protocol, the latest: when, which, why."""
    broken_count: int = 0
    cpu_s: float = 0.0
    """CPU time that the proxy has used."""
