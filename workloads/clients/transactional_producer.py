"""A transactional producer process: one logical producer after the other, until told to stop.

An instance that was fenced, or met another fatal error, is replaced by a new one with the same
transactional id and a process number of its own.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final

import numpy as np
from confluent_kafka import Consumer

from history.journal import EventJournal
from history.poll_recorder import PollRecorder
from history.send_recorder import SendRecorder
from workloads.clients.intake import Intake
from workloads.clients.java_gateway import JavaVirtualMachine
from workloads.clients.shutdown import pause, stop_on_sigterm
from workloads.clients.transactional_client import Transacts
from workloads.clients.transactional_config import TransactorConfig, read_as
from workloads.clients.transactional_libraries import JavaTransactions, LibrdkafkaTransactions
from workloads.clients.transactor import Ending, Transactor
from workloads.generators.intents import Intents

__all__ = ["main", "transact"]

_GENERATIONS_MAX: Final = 200
"""Logical clients of one process: a fault that ends each at once goes on for half a minute."""
_GENERATION_GAP_S: Final = 0.5
_INTAKE: Final = "-intake"

Connect = Callable[[dict[str, str]], Transacts]


def main(argv: Sequence[str]) -> int:
    """Run transactions as configured; return 0 when told to stop, 1 when every instance failed."""
    config = read_as(TransactorConfig, Path(argv[1]))
    stopped = stop_on_sigterm()
    with ExitStack() as stack:
        connect: Connect = LibrdkafkaTransactions
        if config.java is not None:
            machine = stack.enter_context(closing(JavaVirtualMachine(config.java)))
            connect = lambda settings: JavaTransactions(settings, machine=machine)  # noqa: E731  # one of two
        if transact(config, stopped, connect=connect):
            return 0
    print(f"gave up after {_GENERATIONS_MAX} fatal errors", file=sys.stderr)  # noqa: T201  # its log
    return 1


def transact(config: TransactorConfig, stopped: Callable[[], bool], *, connect: Connect) -> bool:
    """Run and record transactions, one logical client after the other, until told to stop.

    False if every one of a bounded number of instances met a fatal error.
    """
    common = config.common
    intents = Intents(
        config.pattern,
        abort_share=config.abort_share,
        rng=np.random.default_rng([common.seed, common.process_of(0), 1]),
    )
    raw = Path(common.raw)
    with (
        EventJournal(raw, "transactions", writer=common.name(0)) as journal,
        EventJournal(raw, "group_offsets", writer=common.name(0)) as offsets,
    ):
        for generation in range(_GENERATIONS_MAX):
            ending = _one(
                config,
                generation,
                connect=connect,
                intents=intents,
                journal=journal,
                offsets=offsets,
                stopped=stopped,
            )
            if ending is Ending.STOPPED:
                return True
            pause(_GENERATION_GAP_S, stopped)
    return False


def _one(
    config: TransactorConfig,
    generation: int,
    *,
    connect: Connect,
    intents: Intents,
    journal: EventJournal,
    offsets: EventJournal,
    stopped: Callable[[], bool],
) -> Ending:
    """Run one logical client, from its connection to its end."""
    common = config.common
    names = {
        "client.id": common.name(generation),
        "transactional.id": config.transactional_id,
    }
    with ExitStack() as stack:
        recorder = stack.enter_context(
            closing(
                SendRecorder(
                    Path(common.raw),
                    client=common.name(generation),
                    process=common.process_of(generation),
                    keys=common.keys,
                    slot_count=_SLOTS,
                )
            )
        )
        intake = _intake(config, generation, offsets=offsets, stack=stack)
        client = stack.enter_context(closing(connect({**common.settings, **names})))
        return Transactor(
            config,
            process=common.process_of(generation),
            client=client,
            recorder=recorder,
            journal=journal,
            intents=intents,
            clock=common.clock,
            stopped=stopped,
            intake=intake,
        ).run()


def _intake(
    config: TransactorConfig, generation: int, *, offsets: EventJournal, stack: ExitStack
) -> Intake | None:
    """Return the intake of one logical client, if it has one; closed with the stack."""
    common = config.common
    if config.intake is None:
        return None
    name = f"{common.name(generation)}{_INTAKE}"
    recorder = PollRecorder(
        Path(common.raw),
        client=name,
        process=config.intake.process + common.process_of(generation) - common.process,
        keys=common.keys,
        slot_count=_SLOTS,
        record_count=_SLOTS,
    )
    stack.enter_context(closing(recorder))
    intake = Intake(
        config.intake,
        keys=common.keys,
        process=common.process_of(generation),
        recorder=recorder,
        journal=offsets,
        clock=common.clock,
        connect=lambda settings: Consumer({**settings, "client.id": name}),
    )
    stack.enter_context(closing(intake))
    return intake


_SLOTS: Final = 1 << 14
"""1 MB a segment: transactions are slow, and logical clients may be many."""

if __name__ == "__main__":
    sys.exit(main(sys.argv))
