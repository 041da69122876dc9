"""A producer process: one logical producer after the other, until told to stop.

One instance of librdkafka is one logical client. When idempotence ends in a fatal error, the
instance can send no more: what it has in flight gets a last chance to end, and a new instance goes
on under a new process number.
"""

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from confluent_kafka import Producer

from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.clients.config import ProducerConfig, read_config
from fencepost.workloads.clients.sender import Produces, Sender
from fencepost.workloads.clients.shutdown import Ending, pause, stop_on_sigterm

GENERATIONS_MAX: Final = 50
"""Logical clients of one process. With more fatal errors than that it is no workload any more."""
_GENERATION_GAP_S: Final = 0.5


def main(argv: Sequence[str]) -> int:
    """Produce as configured; return 0 when told to stop, 1 when every instance failed."""
    config = read_config(Path(argv[1]), ProducerConfig)
    stopped = stop_on_sigterm()
    # Objects that exist by now live as long as the process: no collector needs to see them.
    gc.freeze()
    if produce(config, stopped):
        return 0
    print(f"gave up after {GENERATIONS_MAX} fatal errors", file=sys.stderr)  # noqa: T201  # its log
    return 1


def produce(
    config: ProducerConfig,
    stopped: Callable[[], bool],
    *,
    connect: Callable[[dict[str, Any]], Produces] = Producer,
) -> bool:
    """Send and record, one logical client after the other, until told to stop.

    False if every one of a bounded number of instances met a fatal error.
    """
    for generation in range(GENERATIONS_MAX):
        recorder = SendRecorder(
            Path(config.common.raw),
            client=config.common.name(generation),
            process=config.common.process_of(generation),
            keys=config.common.keys,
        )
        sender = Sender(
            config,
            generation=generation,
            recorder=recorder,
            clock=config.common.clock,
            stopped=stopped,
            connect=connect,
        )
        ending = sender.run()
        recorder.close()
        sender.close()
        if ending is Ending.STOPPED:
            return True
        pause(_GENERATION_GAP_S, stopped)
    return False


if __name__ == "__main__":
    sys.exit(main(sys.argv))
