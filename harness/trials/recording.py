"""A trial on the record: its world fills the tables of a run, and nothing in it changes.

Each deed is a line of the performed play, at its very nanosecond; what was waited for is in these
times. Performed again at them, the play makes the same world (see `trial`).
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final

import yaml

from fencepost.clusters.observation import Down
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.errors import ERROR_NAMES, Error
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.deferred import Item, ReadBook, metadata_items
from fencepost.clusters.reference.simulated.notebook import RecordedNotebook
from fencepost.clusters.topic_spec import keys_of
from fencepost.harness.manifest import note, note_damages
from fencepost.harness.trials.metadata_clients import WriteBook
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.virtual.evidence import (
    ORIGIN_UTC_NS,
    SimulatedTime,
    recorded_tables,
    stamps,
    testify,
)
from fencepost.history.journal import FaultJournal, SampleJournal
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.play import step_data
from fencepost.nemesis.simulated.tape import BufferedTape
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.await_condition import Await
from fencepost.nemesis.verbs.heal import Heal
from fencepost.nemesis.verbs.registry import verb_of
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes, Step
from fencepost.nemesis.verbs.wait import Wait
from fencepost.workloads.simulated.produce_poll import Recorders, SimulatedProducePoll, recorded

_READERS: Final = 100_000
"""The first process number of readers of metadata, beyond all numbers of record clients."""
_FINAL_READ_S: Final = 20.0
_UNKNOWN_TOPIC: Final = ERROR_NAMES[Error.UNKNOWN_TOPIC_OR_PARTITION]


class TrialRecording:
    """The recording of a trial in a run's raw directory.

    `finish` it once the trial is over, in every case.
    """

    def __init__(self, plan: TrialPlan, run: RunDirectory) -> None:
        self._plan = plan
        self._run = run
        self._topics = [topic.name for topic in plan.topics]
        self.tape = BufferedTape(run.raw)
        self.recorders: Recorders = recorded(run.raw, _keys(plan))
        self.workload: SimulatedProducePoll | None = None
        """The workload, once it has started."""
        self._times = AppendTimes(ORIGIN_UTC_NS)
        self.hear = stamps(self._times)
        self._reads = ReadBook(run.raw, writer="readers")
        self.writes: WriteBook | None = None
        self._play: list[dict[str, object]] = []
        self._begin_ns: int | None = None
        """The zero of the play's times, while it goes on."""
        self._down: set[NodeName] = set()
        """The nodes that the play has taken down."""

    def begin(self, cluster: SimulatedCluster) -> None:
        """Begin the recording, when the cluster is built and nothing has happened to it yet."""
        self._cluster = cluster
        cluster.kit.keep_metadata(cluster.disks, self._run.raw, times=self._times)
        self._time = SimulatedTime(cluster)
        self._notebook = RecordedNotebook(
            self._run.raw,
            topics=self._topics,
            node_of=self._node_at,
            record_ns=0,  # leases are short here, and so is the trial
        )
        self._beside = ExitStack()
        self._beside.enter_context(cluster.kit.sight.recorded(self._run.raw))
        self._samples = SampleJournal(self._run.raw, self._time)
        self.faults = FaultJournal(self._run.raw, self._time)
        if self._plan.administers:
            self.writes = WriteBook(self._run.raw, process=_READERS + 10, node_of=self._node_at)

    def topics_are_there(self) -> None:
        """Write down from now on what is shown."""
        self._cluster.watch.notebook = self._notebook

    def _node_at(self, number: int) -> NodeName:
        """Return the node on this host, whatever its id is now."""
        return NodeName(self._cluster.world.hosts[number].name)

    def reads(self, number: int) -> Callable[[int, int, int, MetadataResponse], None]:
        """Return the writer of what one of the readers is shown."""

        def told(broker: int, call_ns: int, now_ns: int, answer: MetadataResponse) -> None:
            self._reads.add(
                _READERS + number,
                self._node_at(broker),
                call_ns=call_ns,
                return_ns=now_ns,
                items=(*metadata_items(answer), *self._absent(answer)),
            )

        return told

    def _absent(self, answer: MetadataResponse) -> Iterator[Item]:
        """Yield a row of each topic that was to be created and that a read of all does not show."""
        shown = {topic[0] for topic in answer.topics}
        for name in () if self.writes is None else self.writes.created:
            if name not in shown:
                yield {"topic": name, "error": _UNKNOWN_TOPIC}

    def faults_begin(self) -> None:
        """Note that the play begins: its times count from now."""
        self._begin_ns = self._time.now_ns()

    def faults_end(self) -> None:
        """The play ends: everything is mended."""
        self.play_on(self._time.now_ns(), Heal())
        self._begin_ns = None

    def note(self, step: Step, **done: Any) -> None:
        """Note a step that is done to the cluster, as `harness.interpreter.books.Played`."""
        if not isinstance(step, Wait | Await):
            for one in self._awaited(replace(step, **done)):
                self.play_on(self._time.now_ns(), one)

    def play_on(self, now: int, step: Step) -> None:
        """Write a line of the play, if it is under way."""
        if self._begin_ns is not None:
            self._play.append(timed_data(replace(step, at_s=(now - self._begin_ns) / 1e9)))

    def _awaited(self, step: Step) -> Iterator[Step]:
        """Yield the step.

        Before it comes a wait for its node to be down, where the play did not take it down.
        """
        action = verb_of(step).action
        if isinstance(step, OnNodes) and isinstance(step.target, NamedNodes) and action is not None:
            (node,) = step.target.nodes
            if action.needs_down and node not in self._down:
                yield Await(condition=Down(node=node), within_s=1.0)
            if action.needs_down or action.takes_down:
                self._down.add(node)
            if isinstance(step, Start):
                self._down.discard(node)
        yield step

    def healed(self) -> None:
        """Note that everything was mended, and the cluster is whole, or late."""
        note(self._run, healed_ns=self._time.now_ns())

    def finish(self, *, crash: str) -> None:
        """Read everything back and stop the cluster, or take what a crash left; write the rest."""
        shortfalls: list[str] = []
        end_ns = self._time.now_ns()
        if not crash:
            try:
                shortfalls += self._read_back()
                end_ns = self._time.now_ns()
                self._cluster.stop()
            except Exception as error:  # noqa: BLE001  # a rule is off: what there is, is the record
                crash = f"{type(error).__name__}: {error}"
        if crash:
            shortfalls.append(f"the simulation failed: {crash}")
        self._close()
        damages = testify(
            self._cluster, self._topics, self._times, run=self._run, say=lambda _words: None
        )
        has_writes = self.writes is not None and self.writes.count
        # The second says that the first counts: it has no growth that the first would lack.
        written = ("metadata_writes", "partition_writes") if has_writes else ()
        note(
            self._run,
            end_ns=end_ns,
            shortfalls=tuple(shortfalls),
            node_ids=self._cluster.node_ids,
            recorded=recorded_tables(self._cluster, wired=True, clients=written),
            stuck_isr_limit_s=self._plan.recovery_s,
            versions=dict(self._cluster.versions),
        )
        note_damages(self._run, damages)

    def _read_back(self) -> list[str]:
        if self.workload is None:
            return ["the cluster did not begin"]
        complete = self.workload.final_read(timeout_s=_FINAL_READ_S)
        missing = sorted(set(_keys(self._plan)) - set(complete))
        return [f"final reads are incomplete: {', '.join(missing)}"] if missing else []

    def _close(self) -> None:
        if self.workload is not None:
            self.workload.abandon()
        self.faults.close()
        self._samples.close()
        self._notebook.__exit__()
        self._beside.close()
        self._reads.close()
        self.tape.close()
        if self.writes is not None:
            self.writes.journal.close()
        self._run.play_path.write_text(yaml.safe_dump(self._play, sort_keys=False, width=100_000))


def timed_data(step: Step) -> dict[str, object]:
    """Return the step as a play writes it, at its nanosecond."""
    stated = step_data(replace(step, at_s=None))
    return stated if step.at_s is None else {"at": f"{step.at_s:.9f}s", **stated}


def _keys(plan: TrialPlan) -> tuple[str, ...]:
    return keys_of(plan.topics)
