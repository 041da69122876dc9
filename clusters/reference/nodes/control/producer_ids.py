"""Blocks of producer ids for brokers to hand out.

Source: KIP-730; Kafka's `ProducerIdControlManager`.
"""

from typing import Final

from clusters.reference.nodes.control.decision import Decision, DecisionView
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from clusters.reference.nodes.records import ProducerIdsRecord

__all__ = ["BLOCK", "allocated"]

BLOCK: Final = 1_000
"""Ids that a broker gets at once."""


def allocated(view: DecisionView, request: AllocateProducerIdsRequest) -> Decision:
    """The next block; STALE_BROKER_EPOCH for a broker that is not the registered one."""
    known = view.image.brokers.get(request.broker_id)
    if known is None or known.broker_epoch != request.broker_epoch:
        error = Error.STALE_BROKER_EPOCH
        return Decision(response=AllocateProducerIdsResponse(request.correlation, error, -1, 0))
    start = view.image.next_producer_id
    # Rule producer_ids_unique.
    following = start + BLOCK if view.rules.producer_ids_unique else start
    return Decision(
        response=AllocateProducerIdsResponse(request.correlation, Error.NONE, start, BLOCK),
        records=(ProducerIdsRecord(request.broker_id, request.broker_epoch, following),),
    )
