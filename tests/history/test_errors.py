import subprocess
import sys
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError

from fencepost.history.errors import ATTEMPTS_UNBOUNDED, Definite, name_of, outcome_of, registry
from fencepost.history.errors_page import errors_page
from fencepost.history.operation import Outcome

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_success_is_ok() -> None:
    assert outcome_of(0, attempts_max=ATTEMPTS_UNBOUNDED) is Outcome.OK


def test_an_unlisted_error_proves_nothing() -> None:
    assert outcome_of(31_999, attempts_max=1) is Outcome.INFO
    assert name_of(31_999) == "ERROR_31999"


@pytest.mark.parametrize("attempts_max", [1, 2, ATTEMPTS_UNBOUNDED])
def test_what_was_never_queued_did_not_happen(attempts_max: int) -> None:
    assert outcome_of(KafkaError._QUEUE_FULL, attempts_max=attempts_max) is Outcome.FAIL


def test_a_refusal_proves_something_only_of_a_single_attempt() -> None:
    refused = KafkaError.NOT_ENOUGH_REPLICAS
    assert outcome_of(refused, attempts_max=1) is Outcome.FAIL
    assert outcome_of(refused, attempts_max=2) is Outcome.INFO


@pytest.mark.parametrize(
    "code",
    [
        KafkaError._MSG_TIMED_OUT,
        KafkaError._PURGE_INFLIGHT,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER,
        KafkaError.UNKNOWN,
    ],
)
def test_what_may_come_after_the_append_is_indefinite_even_of_a_single_attempt(code: int) -> None:
    assert outcome_of(code, attempts_max=1) is Outcome.INFO


def test_local_errors_have_the_codes_and_the_names_of_the_client_in_use() -> None:
    local = {entry.name: code for code, entry in registry().items() if code < -1}
    assert local == {name: getattr(KafkaError, name) for name in local}


def test_broker_errors_have_codes_that_the_client_in_use_knows() -> None:
    unknown = [code for code in registry() if code >= 0 and "Err-" in KafkaError(code).name()]
    assert unknown == [], f"not known to librdkafka {confluent_kafka.libversion()[0]}"


def test_codes_fit_a_slot_of_a_segment() -> None:
    assert all(-(1 << 15) <= code < 1 << 15 for code in registry())


def test_every_entry_gives_its_reason() -> None:
    assert all(entry.meaning and entry.source for entry in registry().values())
    assert {entry.definite for entry in registry().values()} == set(Definite)


def test_the_page_is_the_one_drawn_from_the_registry() -> None:
    assert (DOCS / "errors.md").read_text() == errors_page(), "run `make docs`"


def test_a_client_that_imports_errors_and_recorders_loads_no_table_library() -> None:
    modules = "history.errors, history.send_recorder, history.poll_recorder"
    program = f"import sys, {modules}; print('pyarrow' in sys.modules)"
    printed = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert printed == "False\n"
