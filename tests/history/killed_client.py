"""A client that records at full speed until it is killed, and tells a witness what it was told.

    python killed_client.py DIRECTORY

Everything it records follows from the number of the batch, so that a reader who knows how far it
came knows what must be there. The witness (standard output) gets 8 bytes a message: `2 n` once
batch n was invoked, `2 n + 1` once batch n was completed and its poll recorded.
"""

import os
import struct
import sys
from pathlib import Path

import numpy as np

from fencepost.history.operation import Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.send_recorder import SendRecorder

BATCH = 20
IN_FLIGHT = 3
KEYS = ("t-0", "t-1", "t-2")
PRODUCER, CONSUMER = 1, 2


def sequences_of(batch: int) -> np.ndarray:
    return np.arange(batch * BATCH, (batch + 1) * BATCH)


def keys_of(sequences: np.ndarray) -> np.ndarray:
    return (sequences % len(KEYS)).astype(np.int32)


def outcomes_of(sequences: np.ndarray) -> np.ndarray:
    return (sequences // 7 % 3).astype(np.uint8)


def errors_of(sequences: np.ndarray) -> np.ndarray:
    return np.where(outcomes_of(sequences) == Outcome.OK.code, 0, -192).astype(np.int16)


def tell(message: int) -> None:
    os.write(sys.stdout.fileno(), struct.pack("<q", message))


def record(directory: Path) -> None:
    sends = SendRecorder(directory, client="p", process=PRODUCER, keys=KEYS, slot_count=1 << 11)
    polls = PollRecorder(
        directory, client="c", process=CONSUMER, keys=KEYS, slot_count=512, record_count=4096
    )
    scattered = np.random.default_rng(0).permutation(BATCH)
    invoked: dict[int, np.ndarray] = {}
    for batch in range(1_000_000):
        invoked[batch] = sends.invoke(keys_of(sequences_of(batch)), time_ns=2 * batch)
        tell(2 * batch)
        ended = batch - IN_FLIGHT
        if ended >= 0:
            values = invoked.pop(ended)
            ends = sequences_of(ended)[scattered]
            sends.complete(
                values[scattered],
                offsets=ends,
                outcomes=outcomes_of(ends),
                errors=errors_of(ends),
                time_ns=2 * batch + 1,
            )
            poll = polls.invoke(time_ns=2 * batch)
            polls.complete(
                poll,
                time_ns=2 * batch + 1,
                keys=keys_of(sequences_of(ended)),
                offsets=sequences_of(ended),
                values=values,
                sessions=np.zeros(BATCH, np.int32),
                outcome=Outcome.OK,
            )
            tell(2 * ended + 1)


if __name__ == "__main__":
    record(Path(sys.argv[1]))
