"""The changes of partitions when a broker is fenced, leaves, or is unfenced.

Source: KIP-631, fencing and controlled shutdown; KIP-903 for the last member of an ISR, which stays
in it; Kafka's `ReplicationControlManager`, with its order of records: a fenced broker leads nothing
any more by then, and an elected one is unfenced already.
"""

from collections.abc import Iterator

from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.control.elections import NOBODY, Electorate, elect
from fencepost.clusters.reference.nodes.image import PartitionImage, Registration
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionChangeRecord,
)


def fencing(view: DecisionView, registration: Registration) -> tuple[MetadataRecord, ...]:
    """A broker is fenced: others lead, and it leaves the ISRs."""
    broker_id = registration.broker_id
    electorate = Electorate(view=view, down=broker_id)
    # Rule fenced_leaves_isr.
    leaves_isr = view.rules.fenced_leaves_isr
    return (
        *elections_without(view, electorate, leaves_isr=leaves_isr),
        BrokerRegistrationChangeRecord(broker_id, registration.broker_epoch, fenced=True),
    )


def leaving(view: DecisionView, registration: Registration) -> tuple[MetadataRecord, ...]:
    """A broker begins its controlled shutdown: others lead, and it leaves the ISRs."""
    broker_id = registration.broker_id
    electorate = Electorate(view=view, down=broker_id, leaving=True)
    return (
        *elections_without(view, electorate, leaves_isr=True),
        BrokerRegistrationChangeRecord(
            broker_id, registration.broker_epoch, in_controlled_shutdown=True
        ),
    )


def unfencing(view: DecisionView, registration: Registration) -> tuple[MetadataRecord, ...]:
    """Return the records that unfence a broker and elect it where it may lead and none does."""
    electorate = Electorate(view=view, up=registration.broker_id)
    return (
        BrokerRegistrationChangeRecord(
            registration.broker_id, registration.broker_epoch, fenced=False
        ),
        *elections_of_leaderless(electorate),
    )


def elections_of_leaderless(electorate: Electorate) -> Iterator[PartitionChangeRecord]:
    """Yield an election for each partition without a leader that some broker may lead."""
    for key, old in electorate.view.image.partitions.items():
        if old.leader == NOBODY:
            election = electorate.elected(key, old, old.isr)
            if election.leader != NOBODY:
                record = elect(electorate.view, key, old, election)
                assert record is not None, (key, old, election)
                yield record


def elections_without(
    view: DecisionView, electorate: Electorate, *, leaves_isr: bool
) -> Iterator[PartitionChangeRecord]:
    """Yield the changes by which the electorate's `down` leads nothing, and leaves the ISRs."""
    broker_id = electorate.down
    for key, old in view.image.partitions.items():
        if broker_id in old.isr or broker_id == old.leader:
            isr = _isr_without(view, old, broker_id) if leaves_isr else old.isr
            record = elect(view, key, old, electorate.elected(key, old, isr))
            if record is not None:
                yield record


def leads_something(view: DecisionView, broker_id: int) -> bool:
    """Return whether it leads a partition."""
    return any(one.leader == broker_id for one in view.image.partitions.values())


def _isr_without(view: DecisionView, old: PartitionImage, broker_id: int) -> tuple[int, ...]:
    isr = tuple(one for one in old.isr if one != broker_id)
    # Rule last_member_stays.
    return isr if isr or not view.rules.last_member_stays else old.isr
