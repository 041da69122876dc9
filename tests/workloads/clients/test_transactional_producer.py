"""What a transactional producer records, whatever becomes of its transactions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from kafka_doubles import SendNotes

from fencepost.history.clock import Clock
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.config import ClientConfig
from fencepost.workloads.clients.intake import Taken
from fencepost.workloads.clients.shutdown import Ending
from fencepost.workloads.clients.transactional_client import Group, Severity, TransactionError
from fencepost.workloads.clients.transactional_config import TransactorConfig
from fencepost.workloads.clients.transactional_producer import Transactor
from fencepost.workloads.generators.intents import Intent, Intents

COMMIT, ABORT = Intent.COMMIT, Intent.ABORT
OK, FAIL, INFO = Outcome.OK, Outcome.FAIL, Outcome.INFO


def error(severity: Severity, code: int = 7) -> TransactionError:
    return TransactionError("scripted", code=code, severity=severity)


@dataclass
class ScriptedClient:
    """A client whose calls fail as the script says, by name, once each; it notes every call."""

    failures: dict[str, TransactionError] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)
    sent_offsets: list[Any] = field(default_factory=list)
    before: Callable[[str], None] = lambda _: None

    @property
    def offsets(self) -> Mapping[int, int]:
        return {value: 100 + value for value in self.sent}

    def init(self, timeout_s: float) -> None:
        del timeout_s
        self._call("init")

    def begin(self) -> None:
        self._call("begin")

    def send(self, topic: str, partition: int, payload: bytes, *, value: int) -> None:
        assert (topic, partition) in (("t", 0), ("t", 1))
        assert int.from_bytes(payload[:8], "little") == value
        self._call("send")
        self.sent.append(value)

    def flush(self, timeout_s: float) -> None:
        del timeout_s
        self._call("flush")

    def send_offsets(
        self, offsets: Mapping[tuple[str, int], int], *, group: Group, timeout_s: float
    ) -> None:
        del timeout_s
        self._call("send_offsets")
        self.sent_offsets.append((group.name, dict(offsets)))

    def commit(self, timeout_s: float) -> None:
        del timeout_s
        self._call("commit")

    def abort(self, timeout_s: float) -> None:
        del timeout_s
        self._call("abort")

    def close(self) -> None:
        self._call("close")

    def _call(self, name: str) -> None:
        self.before(name)
        self.calls.append(name)
        if (failure := self.failures.pop(name, None)) is not None:
            raise failure


@dataclass
class Notes:
    """A journal of transactions that remembers: the columns of each, and whether it was ended."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    ended: list[bool] = field(default_factory=list)

    def begin(self, columns: Mapping[str, object]) -> int:
        self.rows.append(dict(columns))
        self.ended.append(False)
        return len(self.rows) - 1

    def note(self, number: int, columns: Mapping[str, object]) -> None:
        assert not self.ended[number]
        self.rows[number] |= columns

    def end(self, number: int, columns: Mapping[str, object]) -> None:
        self.note(number, columns)
        self.ended[number] = True


class Bench:
    """A transactor between its doubles, which runs so many transactions of this pattern."""

    def __init__(
        self,
        *pattern: Intent,
        transactions: int | None = None,
        stop_on_failure: bool = False,
        intake: Any = None,
    ) -> None:
        self.client, self.sends, self.notes = ScriptedClient(), SendNotes(), Notes()
        self.limit = len(pattern) if transactions is None else transactions
        self.questions = 0
        self.transactor = Transactor(
            TransactorConfig(
                common=ClientConfig(
                    client="producer-0",
                    process=0,
                    process_stride=4,
                    raw="",
                    origin_ns=0,
                    keys=("t-0", "t-1"),
                    settings={},
                    seed=1,
                ),
                java=None,
                transactional_id="x",
                rate=0,
                transaction_count_max=None,
                stop_on_failure=stop_on_failure,
                records_per_transaction=2,
                open_ms=0,
                pattern=pattern,
                abort_share=0,
                value_bytes=8,
                delivery_timeout_ms=1000,
                end_timeout_ms=1000,
            ),
            process=0,
            client=self.client,
            recorder=self.sends,
            journal=self.notes,
            intents=Intents(pattern, abort_share=0, rng=np.random.default_rng(1)),
            clock=Clock.start(),
            stopped=self._stopped,
            intake=intake,
        )

    def _stopped(self) -> bool:
        """After so many transactions, or when nothing has begun for many questions."""
        self.questions += 1
        return len(self.notes.rows) >= self.limit or self.questions > 100

    def outcomes(self) -> list[Outcome]:
        return [self.sends.ended[value][0] for value in self.sends.invoked]

    def ends(self) -> list[tuple[str, str]]:
        return [(row["intent"], row["outcome"]) for row in self.notes.rows]


def test_sends_end_as_their_transaction_does() -> None:
    bench = Bench(COMMIT, ABORT)
    assert bench.transactor.run() is Ending.STOPPED
    assert bench.outcomes() == [OK, OK, FAIL, FAIL]
    assert bench.ends() == [("commit", "ok"), ("abort", "ok")]
    assert [bench.sends.ended[value][1] for value in (0, 1, 2, 3)] == [100, 101, -1, -1]


def test_every_transaction_writes_to_every_key_and_names_its_records() -> None:
    bench = Bench(COMMIT, COMMIT)
    bench.transactor.run()
    for row in bench.notes.rows:
        assert sorted(row["keys"]) == ["t-0", "t-1"]
    assert [value for row in bench.notes.rows for value in row["values"]] == [0, 1, 2, 3]
    assert all(bench.notes.ended)


def test_a_record_is_recorded_before_it_is_sent_and_an_end_before_it_is_asked_for() -> None:
    bench = Bench(COMMIT, ABORT)

    def before(name: str) -> None:
        row = bench.notes.rows[-1] if bench.notes.rows else {}
        if name == "begin":
            assert row["begin_ns"] >= 0
        if name == "send":
            following = len(bench.client.sent)
            assert following in bench.sends.invoked
            assert following in row["values"]
        if name in ("commit", "abort"):
            assert (row["intent"], row["end_call_ns"] > 0) == (name, True)
            assert "return_ns" not in row

    bench.client.before = before
    bench.transactor.run()
    assert bench.client.calls.count("send") == 4


def test_a_commit_that_nobody_acknowledged_may_have_happened() -> None:
    bench = Bench(COMMIT)
    bench.client.failures["commit"] = error(Severity.FATAL)
    assert bench.transactor.run() is Ending.FATAL
    assert bench.outcomes() == [INFO, INFO]
    assert bench.ends() == [("commit", "info")]
    assert bench.notes.rows[0]["error"] == "REQUEST_TIMED_OUT"


def test_a_commit_that_leaves_an_abort_did_not_happen_once_that_is_acknowledged() -> None:
    bench = Bench(COMMIT)
    bench.client.failures["commit"] = error(Severity.ABORTABLE)
    assert bench.transactor.run() is Ending.STOPPED
    assert bench.client.calls[-2:] == ["commit", "abort"]
    assert bench.outcomes() == [FAIL, FAIL]
    assert bench.ends() == [("abort", "ok")]


def test_a_commit_may_have_happened_where_not_even_the_abort_was_acknowledged() -> None:
    bench = Bench(COMMIT)
    bench.client.failures |= {
        "commit": error(Severity.ABORTABLE),
        "abort": error(Severity.FATAL),
    }
    assert bench.transactor.run() is Ending.FATAL
    assert bench.outcomes() == [INFO, INFO]
    assert bench.ends() == [("commit", "info")]


def test_what_nobody_asked_to_commit_did_not_happen_whatever_became_of_the_abort() -> None:
    bench = Bench(ABORT)
    bench.client.failures["abort"] = error(Severity.FATAL)
    assert bench.transactor.run() is Ending.FATAL
    assert bench.outcomes() == [FAIL, FAIL]
    assert bench.ends() == [("abort", "info")]


@pytest.mark.parametrize("failing", ["begin", "send", "flush"])
def test_a_transaction_that_cannot_be_written_is_aborted(failing: str) -> None:
    bench = Bench(COMMIT, COMMIT)
    bench.client.failures[failing] = error(Severity.ABORTABLE)
    assert bench.transactor.run() is Ending.STOPPED
    assert bench.ends() == [("abort", "ok"), ("commit", "ok")]
    assert set(bench.outcomes()[:-2]) <= {FAIL}
    assert bench.outcomes()[-2:] == [OK, OK]


def test_a_fenced_producer_commits_nothing_and_gives_way_to_another() -> None:
    bench = Bench(COMMIT)
    bench.client.failures["flush"] = error(Severity.FATAL, code=90)
    assert bench.transactor.run() is Ending.FATAL
    assert bench.outcomes() == [FAIL]
    assert bench.ends() == [("commit", "fail")]
    assert "commit" not in bench.client.calls


@pytest.mark.parametrize("failing", ["send", "flush", "commit", "abort"])
@pytest.mark.parametrize("severity", Severity)
def test_the_first_error_of_a_transaction_is_recorded_and_whether_it_ends_the_instance(
    failing: str, severity: Severity
) -> None:
    bench = Bench(ABORT if failing == "abort" else COMMIT, COMMIT)
    bench.client.failures[failing] = error(severity, code=19)
    bench.transactor.run()
    row, *others = bench.notes.rows
    assert (row["failure"], row["fatal"]) == ("NOT_ENOUGH_REPLICAS", severity is Severity.FATAL)
    assert not any("failure" in other or "fatal" in other for other in others)


def test_of_several_errors_the_first_one_counts_and_any_may_end_the_instance() -> None:
    bench = Bench(COMMIT)
    bench.client.failures |= {
        "flush": error(Severity.ABORTABLE, code=19),
        "abort": error(Severity.FATAL, code=48),
    }
    assert bench.transactor.run() is Ending.FATAL
    (row,) = bench.notes.rows
    assert (row["failure"], row["fatal"]) == ("NOT_ENOUGH_REPLICAS", True)
    assert row["error"] == "INVALID_TXN_STATE"


def test_a_producer_that_stops_on_failure_begins_nothing_after_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fencepost.workloads.clients.transactional_producer.pause", lambda *_: None)
    bench = Bench(COMMIT, transactions=3, stop_on_failure=True)
    bench.client.failures["flush"] = error(Severity.ABORTABLE)
    assert bench.transactor.run() is Ending.STOPPED
    assert bench.ends() == [("abort", "ok")]


def test_an_instance_that_gets_no_producer_id_gives_way_to_another() -> None:
    bench = Bench(COMMIT)
    bench.client.failures["init"] = error(Severity.FATAL)
    assert bench.transactor.run() is Ending.FATAL
    assert not bench.notes.rows


@dataclass
class ScriptedIntake:
    """An intake that has one record for each transaction, and notes how they ended."""

    group: Group = field(default_factory=lambda: Group(name="g", metadata=b""))
    taken_count: int = 0
    ends: list[Outcome] = field(default_factory=list)
    is_empty: bool = False

    def take(self) -> Taken | None:
        if self.is_empty:
            return None
        self.taken_count += 1
        before, after = self.taken_count - 1, self.taken_count
        return Taken(offsets_before={1: before}, offsets={1: after})

    def sending(self, taken: Taken) -> dict[tuple[str, int], int]:
        return {("t", 1): taken.offsets[1]}

    def ended(self, outcome: Outcome, *, error: int = 0) -> None:
        del error
        self.ends.append(outcome)


def test_offsets_are_sent_before_the_end_and_have_the_outcome_of_their_transaction() -> None:
    intake = ScriptedIntake()
    bench = Bench(COMMIT, ABORT, intake=intake)
    bench.transactor.run()
    assert bench.client.sent_offsets == [("g", {("t", 1): 1}), ("g", {("t", 1): 2})]
    ends = [call for call in bench.client.calls if call in ("send_offsets", "commit", "abort")]
    assert ends == ["send_offsets", "commit", "send_offsets", "abort"]
    assert intake.ends == [OK, FAIL]


def test_a_transaction_for_which_nothing_was_taken_sends_no_offsets() -> None:
    intake = ScriptedIntake(is_empty=True)
    bench = Bench(COMMIT, intake=intake)
    bench.transactor.run()
    assert "send_offsets" not in bench.client.calls
    assert bench.outcomes() == [OK, OK]
    assert intake.ends == [OK]


def test_a_transaction_whose_offsets_were_refused_is_aborted() -> None:
    intake = ScriptedIntake()
    bench = Bench(COMMIT, intake=intake)
    bench.client.failures["send_offsets"] = error(Severity.ABORTABLE)
    bench.transactor.run()
    assert bench.ends() == [("abort", "ok")]
    assert intake.ends == [FAIL]


def test_what_became_of_offsets_is_as_unknown_as_what_became_of_records() -> None:
    intake = ScriptedIntake()
    bench = Bench(COMMIT, intake=intake)
    bench.client.failures["commit"] = error(Severity.FATAL)
    bench.transactor.run()
    assert bench.outcomes() == [INFO, INFO]
    assert intake.ends == [INFO]
