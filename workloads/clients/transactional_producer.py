"""A transactional producer process: one logical producer after the other, until told to stop.

An instance that was fenced, or met another fatal error, is replaced by a new one with the same
transactional id and a process number of its own. Each runs one transaction after the other.

A record is in the segment before it is sent, its transaction in the journal before it begins, and
the end of a transaction before it is asked for. The outcome of each send is that of its
transaction:

- the commit was acknowledged: ok;
- the commit was asked for, and neither it nor an abort was acknowledged: info;
- else fail. Once an abort is acknowledged the transaction can only be aborted; and one whose commit
  was never asked for can only be aborted, too, by one party or another (the producer, its
  successor with the same id, or the coordinator at the transaction's time-out). So a send of it did
  not happen, whatever became of the abort.

A transaction that is open when the process dies leaves its sends open, which is info.

With an intake each transaction first takes records in, and their offsets are sent with it: consume,
transform, produce. They count if it commits, and have its outcome.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
from confluent_kafka import Consumer

from fencepost.history.clock import Clock
from fencepost.history.errors import name_of
from fencepost.history.journal import EventJournal
from fencepost.history.operation import Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.clients.columns import messages_of
from fencepost.workloads.clients.intake import Intake
from fencepost.workloads.clients.java_gateway import JavaVirtualMachine
from fencepost.workloads.clients.places import places_of
from fencepost.workloads.clients.recording import RecordsEvents, RecordsSends
from fencepost.workloads.clients.shutdown import Ending, pause, stop_on_sigterm
from fencepost.workloads.clients.transactional_client import Severity, TransactionError, Transacts
from fencepost.workloads.clients.transactional_config import TransactorConfig, read_as
from fencepost.workloads.clients.transactional_libraries import (
    JavaTransactions,
    LibrdkafkaTransactions,
)
from fencepost.workloads.generators.intents import Intent, Intents
from fencepost.workloads.generators.keys import KeyCycle
from fencepost.workloads.generators.pace import Pace

_GENERATIONS_MAX: Final = 200
"""Logical clients of one process: a fault that ends each at once goes on for half a minute."""
_GENERATION_GAP_S: Final = 0.5
_SLOTS: Final = 1 << 14
"""1 MB a segment: transactions are slow, and logical clients may be many."""
_INTAKE: Final = "-intake"

Connect = Callable[[dict[str, str]], Transacts]
_IDLE_S: Final = 0.5
_FLUSH_SLACK_S: Final = 2.0
"""librdkafka's time-outs are looked at once a second."""


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


@dataclass(slots=True)
class _Open:
    """The open transaction."""

    number: int
    keys: list[int] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    failure: str | None = None
    """The first error that the client was told of it."""


class Transactor:
    """One logical client: an instance of a client library and what it owes the recorders."""

    def __init__(
        self,
        config: TransactorConfig,
        *,
        process: int,
        client: Transacts,
        recorder: RecordsSends,
        journal: RecordsEvents,
        intents: Intents,
        clock: Clock,
        stopped: Callable[[], bool],
        intake: Intake | None = None,
    ) -> None:
        self._config = config
        self._process = process
        self._client = client
        self._recorder = recorder
        self._journal = journal
        self._intents = intents
        self._intake = intake
        self._clock = clock
        self._stopped = stopped
        self._failed = False
        self._places = places_of(config.common.keys)
        rng = np.random.default_rng([config.common.seed, process])
        self._keys = KeyCycle(range(len(self._places)), rng)
        self._pace = Pace(rate=config.rate, backlog_max=1, tick_ns=0, start_ns=clock.now_ns())

    def run(self) -> Ending:
        """Run transactions until told to stop, or until the instance cannot go on."""
        try:
            self._client.init(self._config.end_timeout_ms / 1000)
        except TransactionError:
            # A coordinator that was away for so long: the next instance asks again.
            return Ending.STOPPED if self._stopped() else Ending.FATAL
        while not self._stopped():
            if self._is_done():
                pause(_IDLE_S, self._stopped)
            elif self._pace.due(self._clock.now_ns()):
                self._pace.take(1, self._clock.now_ns())
                if not self._transact(self._intents.next()):
                    self._failed = True
                    if not self._config.stop_on_failure:
                        return Ending.FATAL
            else:
                pause(self._pace.wait_ns(self._clock.now_ns()) / 1e9, self._stopped)
        return Ending.STOPPED

    def _is_done(self) -> bool:
        """Return whether this producer has used up its transactions, or stops after a failure."""
        failed = self._config.stop_on_failure and self._failed
        return failed or self._intents.count == self._config.transaction_count_max

    def _transact(self, intent: Intent) -> bool:
        """Run one transaction, recorded from begin to end; False if the instance cannot go on."""
        number = self._journal.begin(
            {
                "process": self._process,
                "transactional_id": self._config.transactional_id,
                "intent": str(intent),
                "begin_ns": self._clock.now_ns(),
                # Of one that is never ended, what is known of its end.
                "outcome": str(Outcome.INFO),
                "keys": [],
                "values": [],
            }
        )
        transaction = _Open(number)
        try:
            self._write(transaction)
        except TransactionError as error:
            self._failing(transaction, error)
            if error.severity is Severity.FATAL:
                self._concluded(transaction, Outcome.FAIL, sends=Outcome.FAIL, error=error.code)
                return False
            self._failed |= intent is Intent.COMMIT
            intent = Intent.ABORT
        return self._end(transaction, intent)

    def _write(self, transaction: _Open) -> None:
        taken = None if self._intake is None else self._intake.take()
        self._client.begin()
        count = self._config.records_per_transaction
        first = -(-count // 2)
        self._send(transaction, first)
        pause(self._config.open_ms / 1000, self._stopped)
        self._send(transaction, count - first)
        if self._intake is not None and taken is not None:
            self._client.send_offsets(
                self._intake.sending(taken),
                group=self._intake.group,
                timeout_s=self._config.delivery_timeout_ms / 1000,
            )

    def _send(self, transaction: _Open, count: int) -> None:
        """Write `count` records, and wait until each has an end."""
        keys = self._keys.take(count)
        values = self._recorder.invoke(keys, time_ns=self._clock.now_ns())
        transaction.keys += keys.tolist()
        transaction.values += values.tolist()
        self._journal.note(transaction.number, self._records(transaction))
        payloads = messages_of(values, value_bytes=self._config.value_bytes)
        for key, value, message in zip(keys.tolist(), values.tolist(), payloads, strict=True):
            payload = message["value"]
            assert isinstance(payload, bytes)
            topic, partition = self._places[key]
            self._client.send(topic, partition, payload, value=value)
        self._client.flush(self._config.delivery_timeout_ms / 1000 + _FLUSH_SLACK_S)

    def _end(self, transaction: _Open, intent: Intent) -> bool:
        """Commit or abort; a commit that leaves only an abort is followed by one."""
        if intent is Intent.ABORT:
            return self._abort(transaction, otherwise=Outcome.FAIL)
        self._calling(transaction, Intent.COMMIT)
        try:
            self._client.commit(self._config.end_timeout_ms / 1000)
        except TransactionError as error:
            self._failing(transaction, error)
            if error.severity is Severity.ABORTABLE:
                self._failed = True
                return self._abort(transaction, otherwise=Outcome.INFO)
            self._concluded(transaction, Outcome.INFO, sends=Outcome.INFO, error=error.code)
            return False
        self._concluded(transaction, Outcome.OK, sends=Outcome.OK)
        return True

    def _abort(self, transaction: _Open, *, otherwise: Outcome) -> bool:
        """Abort. `otherwise`: the outcome of the sends, if the abort is not acknowledged."""
        # A commit that was asked for before stays what the row is about until the abort is sure.
        if otherwise is Outcome.FAIL:
            self._calling(transaction, Intent.ABORT)
        try:
            self._client.abort(self._config.end_timeout_ms / 1000)
        except TransactionError as error:
            self._failing(transaction, error)
            self._concluded(transaction, Outcome.INFO, sends=otherwise, error=error.code)
            return False
        self._journal.note(transaction.number, {"intent": str(Intent.ABORT)})
        self._concluded(transaction, Outcome.OK, sends=Outcome.FAIL)
        return True

    def _calling(self, transaction: _Open, intent: Intent) -> None:
        ending = {"intent": str(intent), "end_call_ns": self._clock.now_ns()}
        self._journal.note(transaction.number, ending)

    def _failing(self, transaction: _Open, error: TransactionError) -> None:
        transaction.failure = transaction.failure or name_of(error.code)
        fatal = error.severity is Severity.FATAL
        self._journal.note(transaction.number, {"failure": transaction.failure, "fatal": fatal})

    def _concluded(
        self, transaction: _Open, outcome: Outcome, *, sends: Outcome, error: int = 0
    ) -> None:
        """Record the end of the transaction and, by it, of each send."""
        now_ns = self._clock.now_ns()
        count = len(transaction.values)
        known = {} if sends is Outcome.FAIL else self._client.offsets
        self._recorder.complete(
            np.array(transaction.values, dtype=np.int64),
            offsets=np.array([known.get(value, -1) for value in transaction.values], np.int64),
            outcomes=np.full(count, sends.code, dtype=np.uint8),
            errors=np.full(count, error, dtype=np.int16),
            time_ns=now_ns,
        )
        end = {"outcome": str(outcome), "return_ns": now_ns, **self._records(transaction)}
        named = {"error": name_of(error)} if error else {}
        self._journal.end(transaction.number, end | named)
        if self._intake is not None:
            self._intake.ended(sends, error=error)

    def _records(self, transaction: _Open) -> dict[str, object]:
        keys = [self._config.common.keys[key] for key in transaction.keys]
        return {"keys": keys, "values": transaction.values}


if __name__ == "__main__":
    sys.exit(main(sys.argv))
