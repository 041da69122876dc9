"""An outage: a broker that an anomaly put out, from when to when. Its proof carries it as facts.

What a run could not do because of it is no doubt of its own: it follows from the anomaly
(`checkers.explained`). So a check that sees an anomaly take a broker out says which broker, and
until when, in facts of these names.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source

_BROKER: Final = "out_broker_id"
_SINCE: Final = "out_since"
_UNTIL: Final = "out_until"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A broker that was put out. Times are ns of the run."""

    check: str
    """The check whose anomaly did it."""
    broker_id: int
    since_ns: int
    until_ns: int
    """The time when it was heard again; `OPEN_NS` if it never was."""

    def holds(self, broker_id: int, time_ns: int) -> bool:
        """Return whether this broker was out at that time because of it."""
        return broker_id == self.broker_id and self.since_ns <= time_ns <= self.until_ns


def outages_of(anomalies: Iterable[Anomaly]) -> Iterator[Outage]:
    """Yield the outages that the proofs of anomalies tell of; one that is legal puts nobody out."""
    for anomaly in anomalies:
        facts = {fact.name: fact.value for fact in anomaly.proof.facts}
        if not anomaly.allowed and _BROKER in facts:
            yield Outage(
                check=anomaly.check,
                broker_id=int(facts[_BROKER]),
                since_ns=int(facts[_SINCE]),
                until_ns=int(facts.get(_UNTIL, OPEN_NS)),
            )


def with_refused_heartbeats(
    proof: Proof, wire: pa.Table | Source, broker_id: int, *, epochs: Iterable[int]
) -> Proof:
    """Return the proof with the heartbeats of these broker epochs that were refused as stale.

    None: the proof as it is. The outage ends with the next heartbeat of the broker id that was
    answered without an error.
    """
    beats = [rpc for rpc in rpcs(wire, "BrokerHeartbeat") if rpc.of("broker_id") == broker_id]
    refused = _refused(beats, frozenset(epochs))
    if not refused:
        return proof
    first, last = refused[0], refused[-1]
    heard_ns = [rpc.asked_ns for rpc in beats if rpc.ok and rpc.asked_ns > first.asked_ns]
    until = {_UNTIL: min(heard_ns)} if heard_ns else {}
    again = "; it was heard again at {out_until}" if heard_ns else ""
    return proof.further(
        "; from then on broker {out_broker_id} was out: {refused_count} of its heartbeats were "
        "refused with STALE_BROKER_EPOCH, from {out_since} (frame {first_refused_frame}) to "
        "{last_refused} (frame {last_refused_frame})" + again,
        frames={"first_refused_frame": first.frame, "last_refused_frame": last.frame},
        times={_SINCE: first.asked_ns, "last_refused": last.asked_ns, **until},
        sources={_SINCE: "first_refused_frame", "last_refused": "last_refused_frame"},
        out_broker_id=broker_id,
        refused_count=len(refused),
    )


def _refused(beats: Sequence[Rpc], epochs: frozenset[int]) -> list[Rpc]:
    return [
        rpc
        for rpc in beats
        if rpc.error == "STALE_BROKER_EPOCH" and rpc.of("broker_epoch") in epochs
    ]
