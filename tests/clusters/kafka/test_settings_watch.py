"""The settings that a broker shows: told for a topic id, and only where it was one throughout."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from broker_doubles import NO_TIME
from kio.schema.describe_configs.v4.response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kio.schema.errors import ErrorCode
from kio.static.primitive import i8
from sealed_runs import sealed_table

from fencepost.clusters.kafka.connection import NoAnswerError
from fencepost.clusters.kafka.settings_watch import SettingsWatch
from fencepost.clusters.port import NodeName
from fencepost.history.journal import RowJournal
from fencepost.history.run_directory import RunDirectory

GIVEN, DEFAULT = 1, 5
SHORT = {"retention.ms": ("1000", GIVEN), "segment.bytes": ("17", DEFAULT)}
FIRST = ({"topic": "t", "topic_id": "id-a"}, {"topic": "u", "error": "UNKNOWN"})
NEXT = ({"topic": "t", "topic_id": "id-b"},)
SILENCE = NoAnswerError("REQUEST_TIMED_OUT", sent=True)


class Ticking:
    """A clock that goes on by a second a look."""

    def __init__(self) -> None:
        self.now = 0

    def now_ns(self) -> int:
        self.now += 1_000_000_000
        return self.now


class Broker:
    """A connection that answers each question about settings with the next of these."""

    def __init__(self, *answers: Mapping[str, tuple[str, int]] | NoAnswerError) -> None:
        self.answers = list(answers)

    def ask(self, request: Any, _response: object, *, timeout_s: float) -> DescribeConfigsResponse:
        assert timeout_s == 2
        assert [one.resource_name for one in request.resources] == ["t"]
        answer = self.answers.pop(0)
        if isinstance(answer, NoAnswerError):
            raise answer
        configs = tuple(
            DescribeConfigsResourceResult(
                name=name,
                value=value,
                read_only=False,
                config_source=i8(source),
                is_sensitive=False,
                synonyms=(),
                documentation=None,
            )
            for name, (value, source) in answer.items()
        )
        result = DescribeConfigsResult(
            error_code=ErrorCode.none,
            error_message=None,
            resource_type=i8(2),
            resource_name="t",
            configs=configs,
        )
        return DescribeConfigsResponse(throttle_time=NO_TIME, results=(result,))


def recorded(
    tmp_path: Path, looks: Sequence[Sequence[Any] | None], *answers: Any
) -> list[tuple[str, list[dict[str, str]]]]:
    """What is on record after these looks at the metadata: topic ids and settings."""
    run = RunDirectory(tmp_path)
    run.raw.mkdir(parents=True)
    connection: Any = Broker(*answers)
    with RowJournal(run.raw, "topic_settings") as journal:
        watch = SettingsWatch(journal, Ticking(), NodeName("broker-1"))
        for look in looks:
            watch.after(look, connection, timeout_s=2)
    rows = sealed_table(run, "topic_settings").to_pylist()
    assert all(row["node"] == "broker-1" and row["call_ns"] < row["return_ns"] for row in rows)
    return [(row["topic_id"], row["settings"]) for row in rows]


def test_what_the_topic_was_given_is_told_once_for_its_id(tmp_path: Path) -> None:
    given = [{"name": "retention.ms", "value": "1000"}]
    told = recorded(tmp_path, [FIRST, FIRST, FIRST, FIRST], SHORT, SHORT, {}, {})
    assert told == [("id-a", given), ("id-a", [])]


@pytest.mark.parametrize("between", [None, NEXT], ids=["no-look", "another-id"])
def test_nothing_is_told_unless_both_looks_show_one_id(
    tmp_path: Path, between: Sequence[Any] | None
) -> None:
    assert recorded(tmp_path, [FIRST, between], SHORT, SHORT) == []


def test_a_broker_that_does_not_answer_has_told_nothing(tmp_path: Path) -> None:
    told = recorded(tmp_path, [FIRST, FIRST, FIRST], SILENCE, {}, {})
    assert told == [("id-a", [])]
