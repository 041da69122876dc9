"""L1 refused-but-running: an incarnation whose registration was refused goes on all the same.

Without a broker epoch a broker has no identity: until it is registered it may only try again. So
after a refusal that reached it, and before its next try, no heartbeat and no AlterPartition may
come from it. An incarnation of which some try was accepted, or was never answered, is not judged:
it may be registered.

Heartbeats do not name the incarnation. A frame is the refused one's if it came from the same node
on a connection that was accepted no earlier than that of the refused registration: connections are
numbered in that order, and an earlier process of the node was dead when this one started.

Source: KIP-631, "Broker registration"; `BrokerLifecycleManager`.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from checkers.entry import CatalogueEntry
from checkers.facts import Judged, Tables
from checkers.metadata.rpcs import Rpc, rpcs
from checkers.metadata.view import MetadataView, counted
from checkers.proof import Proof
from checkers.rows import OPEN_NS
from checkers.slices import Split
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "refused_but_running"]

NAME: Final = "refused-but-running"


def refused_but_running(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Yield the findings on what refused incarnations did, by node. Reads `wire`."""
    registrations = _by_source(tables["wire"], "BrokerRegistration")
    works = _by_source(tables["wire"], "BrokerHeartbeat", "AlterPartition")
    for node in sorted(registrations):
        yield node, counted(NAME, node, _judged(registrations[node], works.get(node, [])))


def _by_source(wire: pa.Table, *apis: str) -> dict[str, list[Rpc]]:
    found: dict[str, list[Rpc]] = {}
    for rpc in rpcs(wire, *apis):
        if rpc.of("item") == 0:
            found.setdefault(rpc.source, []).append(rpc)
    return found


def _judged(registrations: Sequence[Rpc], works: Sequence[Rpc]) -> Iterator[Proof | None]:
    registered: set[str] = set()
    for place, rpc in enumerate(registrations):
        incarnation = rpc.of("incarnation_id")
        if rpc.ok or (rpc.response is None and rpc.reached_ns is not None):
            registered.add(incarnation)
        if incarnation in registered or rpc.response is None or rpc.returned_ns is None:
            continue
        following = registrations[place + 1 : place + 2]
        until_ns = following[0].asked_ns if following else OPEN_NS
        mine = (work for work in works if work.connection >= rpc.connection)
        between = (work for work in mine if rpc.returned_ns < work.asked_ns < until_ns)
        work = next(between, None)
        yield None if work is None else _proof(rpc, work)


def _proof(refused: Rpc, work: Rpc) -> Proof:
    return Proof.of(
        "{target} refused to register incarnation {incarnation_id} of {source} with {error} at "
        "{returned} (frame {frame}), and without another try it sent a {api} at "
        "{asked} (frame {work_frame})",
        values={"broker_epoch": work.of("broker_epoch")},
        frames={"frame": refused.frame, "work_frame": work.frame},
        times={"returned": refused.returned_ns or 0, "asked": work.asked_ns},
        sources=dict.fromkeys(("incarnation_id", "target", "error", "returned"), "frame")
        | dict.fromkeys(("broker_epoch", "api", "asked"), "work_frame"),
        target=refused.target,
        incarnation_id=refused.of("incarnation_id"),
        source=refused.source,
        error=refused.error,
        api=work.api,
    )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="L1",
            name=NAME,
            title="A broker that was refused goes on",
            rule="The registration of an incarnation was refused, and it sent a heartbeat or an "
            "AlterPartition before it tried again; none of its tries was accepted or left "
            "unanswered.",
            meaning="A broker that is not registered takes part.",
            case="a refusal of a registration",
            source="KIP-631",
            needs=("wire",),
        ),
        kernel=refused_but_running,
        split=Split.BROKERS,
    ),
)
