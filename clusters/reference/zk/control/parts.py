"""The state that an active controller's parts share: its context, states, channels and jobs."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from clusters.node_port.effects import Effects
from clusters.reference.nodes.records import MetadataRecord
from clusters.reference.zk.asking import Asking
from clusters.reference.zk.control.broker_states import BrokerStates
from clusters.reference.zk.control.channels import Channels
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.control.work import Job, JobQueue, Plan
from clusters.reference.zk.control.writes import units
from clusters.reference.zk.situation import ZkSituation

__all__ = ["Parts"]


@dataclass(frozen=True, slots=True)
class Parts:
    """Those of one controller epoch."""

    situation: ZkSituation
    asking: Asking
    context: Context
    states: BrokerStates
    channels: Channels
    work: JobQueue

    def decide(
        self,
        now: int,
        records: Callable[[], Iterable[MetadataRecord]],
        effects: Effects,
        *,
        finish: Callable[[int, Effects], None] | None = None,
    ) -> None:
        """Add a job of the controller's own: the records that are still needed, and its end."""

        def finished(now: int, _response: Any, effects: Effects) -> None:
            if finish is not None:
                finish(now, effects)

        job = Job(lambda: Plan(units(self.context, records())), finished)
        self.work.add(now, job, effects)
