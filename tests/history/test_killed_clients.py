"""kill -9 at random moments of a client that records at full speed: nothing it knew is lost."""

import random
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import killed_client as client
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from sealed_runs import sealed_table

from fencepost.history.counts import live_counts
from fencepost.history.run_directory import RunDirectory
from fencepost.history.segment_format import PROCESS_SHIFT

pytestmark = pytest.mark.slow

KILLS = [0, 1, *(pytest.param(number, marks=pytest.mark.slow) for number in range(2, 20))]


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """How many batches had surely been invoked and completed when the client died."""

    invoked: int
    completed: int


def killed(raw: Path, seed: int) -> Witness:
    """Let a client record into `raw`, kill it after a random number of messages to the witness."""
    message_count = random.Random(seed).randrange(1, 4000)
    process = subprocess.Popen(
        [sys.executable, client.__file__, str(raw)],
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process, process.stdout as pipe:
        seen = pipe.read(8 * message_count)
        process.kill()
        seen += pipe.read()
    whole = len(seen) // 8
    messages = struct.unpack(f"<{whole}q", seen[: whole * 8])
    assert whole >= message_count, f"the client died unasked after {whole} messages"
    return Witness(
        invoked=1 + max(message // 2 for message in messages if message % 2 == 0),
        completed=1 + max((message // 2 for message in messages if message % 2), default=-1),
    )


@pytest.mark.parametrize("number", KILLS)
def test_a_killed_client_loses_nothing_that_it_was_told(
    tmp_path: Path, fuzz_seeds: range, number: int
) -> None:
    seed = fuzz_seeds[number]
    run = RunDirectory(tmp_path)
    run.raw.mkdir()
    witness = killed(run.raw, seed)
    counts = live_counts(run.raw)
    operations = sealed_table(run, "operations")
    records = sealed_table(run, "records")

    sends = operations.filter(pc.field("f") == "send")
    assert len(sends) >= witness.invoked * client.BATCH, f"seed {seed}: an invocation is missing"
    assert len(sends) - client.BATCH <= counts.invoked <= len(sends), f"seed {seed}"
    returned = assert_sends_are_as_recorded(sends, seed)
    assert returned[: witness.completed * client.BATCH].all(), f"seed {seed}: an ack is missing"

    assert_records_are_as_recorded(records, len(sends), witness, seed)


def assert_sends_are_as_recorded(sends: pa.Table, seed: int) -> np.ndarray:
    """Each send is as the client made it, open ones are info; which of them returned."""
    sequences = np.arange(len(sends))
    returned = sends["return_ns"].is_valid().to_numpy()
    words = np.array(["ok", "fail", "info"])[client.outcomes_of(sequences)]
    expected = np.where(returned, words, "info")
    assert pc.all(pc.equal(sends["outcome"], pa.array(expected))).as_py(), f"seed {seed}"
    batches = sequences // client.BATCH
    assert np.array_equal(sends["call_ns"].to_numpy(), 2 * batches)
    told_ns = 2 * (batches + client.IN_FLIGHT) + 1
    assert np.array_equal(sends["return_ns"].fill_null(-1), np.where(returned, told_ns, -1))
    failed = returned & (words != "ok")
    assert np.array_equal(sends["error"].is_valid().to_numpy(), failed), f"seed {seed}"
    return returned


def assert_records_are_as_recorded(
    records: pa.Table, send_count: int, witness: Witness, seed: int
) -> None:
    sent = records.filter(pc.field("f") == "send").sort_by("value")
    polled = records.filter(pc.field("f") == "poll").sort_by("value")
    assert len(sent) == send_count
    assert len(polled) >= witness.completed * client.BATCH, f"seed {seed}: a polled one is missing"
    for table in (sent, polled):
        sequences = np.arange(len(table))
        expected = (client.PRODUCER << PROCESS_SHIFT) + sequences
        assert np.array_equal(table["value"].to_numpy(), expected), f"seed {seed}"
        named = np.array(client.KEYS)[client.keys_of(sequences)]
        assert pc.all(pc.equal(table["key"], pa.array(named))).as_py(), f"seed {seed}"
    assert np.array_equal(polled["offset"].to_numpy(), np.arange(len(polled))), f"seed {seed}"
