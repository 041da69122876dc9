"""The state that an active controller's parts share: its context, states, channels, jobs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.clusters.node_port.effects import Effects
from fencepost.clusters.node_port.zookeeper import Delete
from fencepost.clusters.reference.nodes.records import MetadataRecord
from fencepost.clusters.reference.zk.control.broker_states import BrokerStates
from fencepost.clusters.reference.zk.control.channels import Channels
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.control.job_queue import JobPlan, JobQueue, JobRefusedError
from fencepost.clusters.reference.zk.control.refusals import refuse
from fencepost.clusters.reference.zk.control.writes import unit, units
from fencepost.clusters.reference.zk.coroutines import Coroutines
from fencepost.clusters.reference.zk.session_requests import SessionRequests
from fencepost.clusters.reference.zk.situation import ZkSituation


@dataclass(frozen=True, slots=True)
class ControllerState:
    """Those of one controller epoch."""

    situation: ZkSituation
    zookeeper: SessionRequests
    context: Context
    states: BrokerStates
    channels: Channels
    work: JobQueue
    coroutines: Coroutines

    async def decided(self, records: Callable[[], Iterable[MetadataRecord]]) -> None:
        """Write the records that are needed once all before is done: a decision of its own."""
        await self.work.done(lambda: JobPlan(units(self.context, records())))

    def decide(
        self, now: int, records: Callable[[], Iterable[MetadataRecord]], effects: Effects
    ) -> None:
        """Begin a decision that nothing waits for."""
        self.coroutines.run(now, self.decided(records), effects)

    async def removed(self, deletes: Sequence[Delete]) -> None:
        """Remove these znodes, each on its own."""
        await self.work.done(lambda: JobPlan([unit(self.context, [one]) for one in deletes]))

    async def answer(self, source: int, request: Any, plan: Callable[[], JobPlan]) -> Any:
        """Decide what was asked for; return the response. What is not decided is refused here.

        Raises JobRefusedError then.
        """
        try:
            return await self.work.done(plan, is_asked=True)
        except JobRefusedError as refused:
            refuse(source, request, refused.error, self.coroutines.effects)
            raise
