"""Samples of the nodes and clients, once a second, for the plots: never for a verdict."""

from clusters.abilities import Measures
from clusters.port import Cluster
from harness.timing import RealTime, Time
from history.counts import Counts
from history.journal import SampleJournal

__all__ = ["Sampler"]

_INTERVAL_S = 1.0


class Sampler:
    """A writer of samples to the journal, at most once a second, that knows the present rate."""

    def __init__(self, cluster: Cluster, journal: SampleJournal, time: Time | None = None) -> None:
        self._cluster = cluster
        self._measured = cluster if isinstance(cluster, Measures) else None
        self._journal = journal
        self._time = time or RealTime()
        self._last_s = self._time.now_s()
        self._last_ok = 0
        self._cpu_s: dict[str, float] = {}
        self.ok_per_s = 0.0

    def sample(self, counts: Counts) -> float:
        """Sample if a second has passed.

        Return the rate of acknowledged sends a second, as last seen.
        """
        passed_s = self._time.now_s() - self._last_s
        if passed_s < _INTERVAL_S:
            return self.ok_per_s
        self.ok_per_s = (counts.ok - self._last_ok) / passed_s
        self._journal.add("run", "acknowledged_count", counts.ok)
        self._journal.add("run", "polled_count", counts.polled_records)
        self._sample_nodes(passed_s)
        self._last_s += passed_s
        self._last_ok = counts.ok
        return self.ok_per_s

    def _sample_nodes(self, passed_s: float) -> None:
        if self._measured is None:
            return
        for node in self._cluster.nodes:
            usage = self._measured.usage(node)
            if usage is None:
                self._cpu_s.pop(node, None)
                continue
            self._journal.add(node, "rss_bytes", usage.rss_bytes)
            if node in self._cpu_s:
                of_one_core = max(0.0, usage.cpu_s - self._cpu_s[node]) / passed_s
                self._journal.add(node, "cpu_fraction", of_one_core)
            self._cpu_s[node] = usage.cpu_s
