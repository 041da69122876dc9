"""The watcher of stable offsets: waits for every transaction to end once every producer has.

A reader at read_committed is given a key's records up to its last stable offset: the first record
of a transaction that is open there. Once no client writes, each transaction ends (its marker was on
its way, or the coordinator aborts it at its time-out) and the last stable offset becomes the end of
the log. A key where it does not is held up for good.

The high watermark is asked for first: if the last stable offset, asked for afterwards, is below it,
there was an open transaction at that moment, whatever was written in between. Each observation that
differs from the one before is recorded; the last one of each key always is.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # it is there

from fencepost.history.clock import Clock
from fencepost.history.journal import RowJournal
from fencepost.workloads.clients.places import places_of
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.clients.transactional_config import OffsetsConfig, read_as

_ASK_S_MAX: Final = 3.0
_PAUSE_S: Final = 0.2
_END: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it is what it says


class AsksOffsets(Protocol):
    """The part of an AdminClient that is used."""

    def list_offsets(
        self, topic_partition_offsets: dict[TopicPartition, Any], **kwargs: Any
    ) -> Mapping[Any, Any]:
        """Do as `AdminClient.list_offsets`: return futures by topic and partition."""


class OffsetsWatch:
    """Observes keys until the last stable offset of each is the end of its log, or time is up."""

    def __init__(
        self,
        config: OffsetsConfig,
        *,
        admin: AsksOffsets,
        record: Callable[[Mapping[str, object]], None],
    ) -> None:
        self._config = config
        self._clock = Clock(config.origin_ns)
        self._admin = admin
        self._record = record
        self._places = dict(
            zip(config.keys, (TopicPartition(*p) for p in places_of(config.keys)), strict=True)
        )
        self._last: dict[str, tuple[int, int]] = {}

    def run(self, stopped: Callable[[], bool]) -> tuple[str, ...]:
        """Observe; return the keys of which the last stable offset is the end of the log."""
        settled: list[str] = []
        while not stopped():
            over = self._clock.now_ns() >= self._config.due_ns
            waiting = [key for key in self._config.keys if key not in settled]
            seen = self._look(waiting, due=over)
            settled += [key for key, (stable, end) in seen.items() if stable >= end]
            # Once it is over, any answer for each key is enough.
            if len(settled) == len(self._places) or (over and len(seen) == len(waiting)):
                break
            if self._clock.now_ns() >= self._config.deadline_ns:
                break
            time.sleep(_PAUSE_S)
        return tuple(key for key in self._config.keys if key in settled)

    def _look(self, keys: Sequence[str], *, due: bool) -> dict[str, tuple[int, int]]:
        """Return the last stable offset and high watermark of the keys whose leader says both."""
        time_ns = self._clock.now_ns()
        ends = self._ask(keys, IsolationLevel.READ_UNCOMMITTED)
        stables = self._ask(list(ends), IsolationLevel.READ_COMMITTED)
        seen = {key: (stable, ends[key]) for key, stable in stables.items()}
        for key, (stable, end) in seen.items():
            if due or stable >= end or self._last.get(key) != (stable, end):
                self._last[key] = stable, end
                self._record(
                    {
                        "time_ns": time_ns,
                        "key": key,
                        "last_stable_offset": stable,
                        "high_watermark": end,
                        "due": due,
                    }
                )
        return seen

    def _ask(self, keys: Sequence[str], isolation: IsolationLevel) -> dict[str, int]:
        if not keys:
            return {}
        wanted = {self._places[key]: _END for key in keys}
        answers = self._admin.list_offsets(
            wanted, isolation_level=isolation, request_timeout=_ASK_S_MAX
        )
        found = {}
        for key in keys:
            try:
                found[key] = answers[self._places[key]].result(_ASK_S_MAX + 1).offset
            except (KafkaException, TimeoutError) as error:
                _say(f"no offset of {key} yet: {error}")
        return found


def main(argv: Sequence[str]) -> int:
    """Watch as the configuration says; always return 0."""
    config = read_as(OffsetsConfig, Path(argv[1]))
    admin = AdminClient({**config.settings, "client.id": config.client})
    with RowJournal(Path(config.raw), "stable_offsets") as journal:
        settled = OffsetsWatch(config, admin=admin, record=journal.add).run(stop_on_sigterm())
    Path(config.result).write_text(json.dumps({"settled": settled}) + "\n")
    return 0


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201  # the client's log


if __name__ == "__main__":
    sys.exit(main(sys.argv))
