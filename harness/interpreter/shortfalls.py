"""The shortfalls of a run, in words; of a cluster that was not whole in time, what it lacked, too.

What it lacked is data, so that the checks can tell a doubt of its own from the consequence of an
anomaly that they prove (`checkers.explained`).
"""

from fencepost.clusters.kafka_port import BrokersView
from fencepost.clusters.observation import Observation
from fencepost.clusters.port import NodeState, SystemView
from fencepost.harness.interpreter.observer import missing_in
from fencepost.history.clock import TellsTime
from fencepost.history.manifest import NotWhole


class Shortfalls(list[str]):
    """A list of sentences."""

    def __init__(self, clock: TellsTime | None = None) -> None:
        """Begin without any. `clock`: the run's; None: what was lacking is told in words alone."""
        super().__init__()
        self.of_cluster: list[NotWhole] = []
        self._clock = clock

    def not_whole(self, words: str, now: Observation) -> None:
        """Note that the cluster was not whole in time; `words` say after what."""
        self.append(f"not whole {words}: {missing_in(now)}")
        if self._clock is None or now.view is None:
            return
        out = now.member_ids - now.view.taking_part
        running = all(
            state is NodeState.RUNNING or node in now.outsiders
            for node, state in now.states.items()
        )
        if out and running and _lacks_only(now.view, out):
            lacking = NotWhole(
                shortfall=self[-1], time_ns=self._clock.now_ns(), broker_ids=tuple(sorted(out))
            )
            self.of_cluster.append(lacking)


def _lacks_only(view: SystemView, brokers: frozenset[int]) -> bool:
    """Return whether nothing is lacking but these brokers, in the partitions that they replicate.

    A partition without a leader lacks others, too, if one of them could lead it.
    """
    if not isinstance(view, BrokersView):
        return False
    lacking = [
        one
        for one in view.partitions.values()
        if one.leader is None or set(one.isr) != set(one.replicas)
    ]
    return len(lacking) == len(view.incomplete) and all(
        set(one.replicas) - set(one.isr) <= brokers
        and (one.leader is not None or set(one.isr) <= brokers)
        for one in lacking
    )
