"""The cost of recording: sends a second of one producer process, with and without a record of them.

The producer is the workload's own, as fast as it can, with acks=all to three replicas; only its
recorder is exchanged. Runs alternate (with, without, with, …), since other work on the machine
moves single figures far more than recording does: read the ratios of neighbouring runs.
"""

import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.bench.brief_topic import BRIEF, brief_topic
from fencepost.bench.clusters import built
from fencepost.bench.measuring import spread
from fencepost.clusters.system import Make, Wanted
from fencepost.history.clock import Clock
from fencepost.history.operation import Outcome
from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.clients.config import ClientConfig, ProducerConfig
from fencepost.workloads.clients.recording import RecordsSends
from fencepost.workloads.clients.sender import Sender
from fencepost.workloads.librdkafka import producer_settings

_VALUE_BYTES: Final = 100
_BATCH: Final = 1000
_IN_FLIGHT_MAX: Final = 50_000
_MESSAGE_TIMEOUT_MS: Final = 30_000
_RUN_S_MAX: Final = 60.0
"""The time that a run may take to get its first answer."""
_ALONE_RUNS: Final = 5
_ALONE_OPERATIONS: Final = 1_000_000
_TOPIC: Final = brief_topic(partitions=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecorderFigures:
    """Operations (sends with their ends) a second, of each run, in order."""

    title: str
    """The cluster that the producer wrote to."""
    java: str
    value_bytes: int
    seconds: int
    """The length of each run, from its first answer on."""
    recorded_per_s: tuple[float, ...]
    unrecorded_per_s: tuple[float, ...]
    """Run number i of these came right after number i of the recorded ones."""
    alone_per_s: tuple[float, ...]
    """The recorder without Kafka: invocations and completions in the same batches."""

    @property
    def ratios(self) -> tuple[float, ...]:
        """The ratios of recorded to unrecorded, by pair: 1 means that recording costs nothing."""
        pairs = zip(self.recorded_per_s, self.unrecorded_per_s, strict=True)
        return tuple(recorded / unrecorded for recorded, unrecorded in pairs)

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {**asdict(self), "ratios": self.ratios}

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        return [
            f"{self.title}, Java {self.java}; {len(self.ratios)} pairs of {self.seconds} s",
            f"acks=all to 3 replicas, {self.value_bytes} B a record",
            "operations a second: min / median / max",
            f"  recorded            {spread(self.recorded_per_s, '9,.0f')}",
            f"  without recording   {spread(self.unrecorded_per_s, '9,.0f')}",
            f"  ratio, pair by pair {spread(self.ratios, '9.2f')}",
            f"  the recorder alone  {spread(self.alone_per_s, '9,.0f')}",
        ]


def recorder_bench(
    make: Make, *, pairs: int, seconds: int, say: Callable[[str], None] = lambda _: None
) -> RecorderFigures:
    """Start a cluster and measure pairs of runs; raise HarnessError if it does not start."""
    prepared = make.driver.prepare(BRIEF, Wanted(), say)
    recorded, unrecorded = [], []
    with built(make, BRIEF, prepared=prepared, name="recorder") as bench:
        bench.cluster.start()
        bench.cluster.create_topics([_TOPIC])
        servers = bench.cluster.bootstrap_servers
        # The first run finds a cold cluster: its JVMs compile, its producer ids are loaded.
        _run(servers, _Unrecorded(), pairs, seconds)
        for pair in range(pairs):
            with tempfile.TemporaryDirectory(dir=bench.directory) as raw:
                recorded.append(_run(servers, _recorder(Path(raw)), pair, seconds))
            unrecorded.append(_run(servers, _Unrecorded(), pair, seconds))
            say(f"recorded {recorded[-1]:,.0f}/s, without {unrecorded[-1]:,.0f}/s")
    return RecorderFigures(
        title=make.title.format(release=BRIEF.release),
        java=prepared.java.version,
        value_bytes=_VALUE_BYTES,
        seconds=seconds,
        recorded_per_s=tuple(recorded),
        unrecorded_per_s=tuple(unrecorded),
        alone_per_s=tuple(_alone() for _ in range(_ALONE_RUNS)),
    )


class _Unrecorded:
    """A recorder that hands out values and writes nothing."""

    def __init__(self) -> None:
        self._count = 0

    def invoke(self, keys: NDArray[np.int32], *, time_ns: int) -> NDArray[np.int64]:
        """Return the values to send."""
        del time_ns
        values = np.arange(self._count, self._count + len(keys), dtype=np.int64)
        self._count += len(keys)
        return values

    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int,
    ) -> None:
        """Do nothing."""


class _Counted:
    """A recorder that passes all on to another, and counts the ok ends since the first end."""

    def __init__(self, recorder: RecordsSends) -> None:
        self._recorder = recorder
        self.ok_count = 0
        self.first_ns: int | None = None
        self.last_ns = 0

    def invoke(self, keys: NDArray[np.int32], *, time_ns: int) -> NDArray[np.int64]:
        """Pass the sends on to the recorder."""
        return self._recorder.invoke(keys, time_ns=time_ns)

    def complete(
        self,
        values: NDArray[np.int64],
        *,
        offsets: NDArray[np.int64],
        outcomes: NDArray[np.uint8],
        errors: NDArray[np.int16],
        time_ns: int,
    ) -> None:
        """Pass the ends on to the recorder, and count those that are ok."""
        self._recorder.complete(
            values, offsets=offsets, outcomes=outcomes, errors=errors, time_ns=time_ns
        )
        if self.first_ns is None:
            # The first end waited for metadata and a producer id: the clock starts here.
            self.first_ns = time_ns
            return
        self.ok_count += int(np.count_nonzero(outcomes == Outcome.OK.code))
        self.last_ns = time_ns


def _run(bootstrap_servers: str, recorder: RecordsSends, seed: int, seconds: int) -> float:
    """Return the sends a second that ended ok, from the first end until told to stop."""
    clock = Clock.start()
    counted = _Counted(recorder)
    sender = Sender(
        _config(bootstrap_servers, seed),
        generation=0,
        recorder=counted,
        clock=clock,
        stopped=lambda: _is_over(counted, clock, seconds),
    )
    sender.run()
    sender.close()
    if isinstance(recorder, SendRecorder):
        recorder.close()
    if counted.first_ns is None or counted.last_ns == counted.first_ns:
        return 0.0
    return counted.ok_count / (counted.last_ns - counted.first_ns) * 1e9


def _is_over(counted: _Counted, clock: Clock, seconds: int) -> bool:
    now_ns = clock.now_ns()
    if counted.first_ns is None:
        return now_ns > _RUN_S_MAX * 1e9
    return now_ns - counted.first_ns > seconds * 1e9


def _recorder(raw: Path) -> SendRecorder:
    return SendRecorder(raw, client="bench", process=0, keys=_TOPIC.keys)


def _config(bootstrap_servers: str, seed: int) -> ProducerConfig:
    settings = producer_settings(
        bootstrap_servers=bootstrap_servers,
        acks="all",
        idempotence=True,
        linger_ms=5,
        message_timeout_ms=_MESSAGE_TIMEOUT_MS,
        in_flight_max=_IN_FLIGHT_MAX,
        settings={},
    )
    common = ClientConfig(
        client="bench",
        process=0,
        process_stride=1,
        raw="",
        origin_ns=0,
        keys=_TOPIC.keys,
        settings=settings,
        seed=seed,
    )
    return ProducerConfig(
        common=common,
        rate=0,
        value_bytes=_VALUE_BYTES,
        batch_max=_BATCH,
        in_flight_max=_IN_FLIGHT_MAX,
        flush_ms=_MESSAGE_TIMEOUT_MS,
    )


def _alone() -> float:
    """Return the operations a second of a recorder without a broker to wait for."""
    keys = np.arange(_BATCH, dtype=np.int32) % len(_TOPIC.keys)
    offsets = np.arange(_BATCH, dtype=np.int64)
    outcomes = np.full(_BATCH, Outcome.OK.code, dtype=np.uint8)
    errors = np.zeros(_BATCH, dtype=np.int16)
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as raw:
        recorder = _recorder(Path(raw))
        begin_ns = time.monotonic_ns()
        for _ in range(_ALONE_OPERATIONS // _BATCH):
            values = recorder.invoke(keys, time_ns=time.monotonic_ns())
            recorder.complete(
                values,
                offsets=offsets,
                outcomes=outcomes,
                errors=errors,
                time_ns=time.monotonic_ns(),
            )
        took_ns = time.monotonic_ns() - begin_ns
        recorder.close()
    return _ALONE_OPERATIONS / took_ns * 1e9
