"""The rules of who may lead and who is elected, and the records of a partition's change.

Source: KIP-631 (a fenced broker leads nothing), KIP-841 (one that is leaving neither), KIP-704
(unclean elections are said so), and Kafka's `PartitionChangeBuilder`.
"""

from dataclasses import dataclass
from typing import Final

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.records import PartitionChangeRecord

NOBODY: Final = -1
"""The leader of a partition that has none."""

_TOPIC: Final = 2
_BROKER: Final = 4
UNCLEAN: Final = "unclean.leader.election.enable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The leader from here on, and the ISR that goes with it."""

    leader: int
    isr: tuple[int, ...]
    unclean: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Electorate:
    """The brokers as they are once this decision holds."""

    view: DecisionView
    down: int = NOBODY
    """The decision fences it, or lets it begin to leave."""
    leaving: bool = False
    """The reason that it is `down`: it begins its controlled shutdown, and is not fenced."""
    up: int = NOBODY
    """The decision unfences it."""

    def may_lead(self, broker_id: int) -> bool:
        """Return whether it can be elected."""
        known = self.view.image.brokers.get(broker_id)
        if known is None or known.in_controlled_shutdown:
            return False
        if self.leaving and broker_id == self.down:
            return False
        if broker_id == self.up or not self.view.rules.fenced_leads_nothing:
            # Rule fenced_leads_nothing.
            return True
        return not (known.fenced or broker_id == self.down or broker_id in self.view.expired)

    def elected(self, key: PartitionKey, old: PartitionImage, isr: tuple[int, ...]) -> Election:
        """Return the leader of a partition with this ISR: the same, the first member able, or none.

        The order is the replicas', so that the preferred leader comes first.
        """
        if old.leader in isr and self.may_lead(old.leader):
            return Election(leader=old.leader, isr=isr)
        able = [one for one in old.replicas if self.may_lead(one)]
        for replica in able:
            # Rule leader_from_isr.
            if replica in isr or not self.view.rules.leader_from_isr:
                return Election(leader=replica, isr=isr if replica in isr else (replica,))
        if able and self._unclean_allowed(key):
            return unclean(able[0])
        return Election(leader=NOBODY, isr=isr)

    def _unclean_allowed(self, key: PartitionKey) -> bool:
        configs = self.view.image.configs
        own = configs.get((_TOPIC, self.view.image.names.get(key[0], "")), {}).get(UNCLEAN)
        return (own or configs.get((_BROKER, ""), {}).get(UNCLEAN, "false")) == "true"


def unclean(replica: int) -> Election:
    """An election of a replica that may lack records: it is alone in the ISR."""
    return Election(leader=replica, isr=(replica,), unclean=True)


def elect(
    view: DecisionView, key: PartitionKey, old: PartitionImage, election: Election
) -> PartitionChangeRecord | None:
    """The record by which an election holds; None if it changes nothing."""
    return change(
        view,
        key,
        old,
        isr=election.isr,
        leader=None if election.leader == old.leader else election.leader,
        recovering=True if election.unclean else None,
    )


def change(
    view: DecisionView,
    key: PartitionKey,
    old: PartitionImage,
    *,
    isr: tuple[int, ...],
    leader: int | None = None,
    replicas: tuple[int, ...] | None = None,
    adding: tuple[int, ...] | None = None,
    removing: tuple[int, ...] | None = None,
    recovering: bool | None = None,
) -> PartitionChangeRecord | None:
    """A partition's change, which names only what it changes; None if that is nothing.

    A `leader`, also the same one again, begins a new leader epoch.
    """
    record = PartitionChangeRecord(
        *key,
        isr=None if isr == old.isr else isr,
        leader=leader,
        # Rule leader_epoch_bumped.
        bumps_leader_epoch=view.rules.leader_epoch_bumped,
        replicas=None if replicas == old.replicas else replicas,
        adding=None if adding == old.adding else adding,
        removing=None if removing == old.removing else removing,
        recovering=None if recovering == old.recovering else recovering,
    )
    changes = (record.isr, leader, record.replicas, record.adding, record.removing)
    nothing = all(one is None for one in changes) and record.recovering is None
    return None if nothing else record
