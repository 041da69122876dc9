"""Which frames fit a match, and which rules are refused before anything runs."""

import itertools
import struct
from dataclasses import replace
from typing import Any

import pytest
from kio.index import load_response_schema
from wire_doubles import (
    LINK,
    TOPIC_ID_TEXT,
    beat_request,
    example,
    join_request,
    join_response,
    response_frame,
)

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.columns import METADATA_TOPIC
from fencepost.clusters.protocol.record_batches import BatchHeader, encoded_batch_header
from fencepost.clusters.protocol.record_encoding import encoded_record
from fencepost.clusters.protocol.varints import encoded_unsigned
from fencepost.history.failure import UsageError
from fencepost.nemesis.wire.frame import Frame, TopicNames
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.matching import Matcher, refuse_impossible
from fencepost.nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Direction,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
)

IS, INCLUDES, EXCLUDES = Operator.IS, Operator.INCLUDES, Operator.EXCLUDES
JOIN = Frame(
    connection=0,
    link=LINK,
    direction=Direction.REQUEST,
    header=Header(56, 3, 1, "1", answered=True),
    data=join_request(isr=(1, 2)),
    time_ns=0,
    names=TopicNames({TOPIC_ID_TEXT: "t"}),
)
JOINED = replace(JOIN, direction=Direction.RESPONSE, data=join_response(isr=(1, 2)))
BEAT = replace(JOIN, header=Header(63, 1, 1, "1", answered=True), data=beat_request(offset=7))


def rule(match: Match, action: Action | None = None) -> Rule:
    return Rule(name="it", action=action or Hold(), match=match)


def fits(frame: Frame, **match: Any) -> bool:
    return Matcher(rule(Match(**match))).fits(frame)


def meets(frame: Frame, field: str, operator: Operator, value: Any) -> bool:
    where = (Clause(field=field, operator=operator, value=value),)
    return fits(frame, where=where, direction=frame.direction)


def test_what_is_not_stated_fits_everything() -> None:
    assert fits(JOIN)
    assert not fits(JOINED)
    assert fits(JOINED, direction=Direction.RESPONSE)


@pytest.mark.parametrize(
    ("match", "expected"),
    [
        ({"api": "AlterPartition"}, True),
        ({"api": "BrokerHeartbeat"}, False),
        ({"version_min": 3, "version_max": 3}, True),
        ({"version_min": 4}, False),
        ({"version_max": 2}, False),
        ({"client_id": "1"}, True),
        ({"client_id": "2"}, False),
        ({"sources": ("broker-1", "broker-2")}, True),
        ({"sources": ("broker-2",)}, False),
        ({"targets": ("controller-1",)}, True),
        ({"targets": ("broker-1",)}, False),
    ],
)
def test_all_that_is_stated_has_to_fit(match: dict[str, Any], *, expected: bool) -> None:
    assert fits(JOIN, **match) is expected


@pytest.mark.parametrize(
    ("field", "operator", "value", "expected"),
    [
        ("isr", INCLUDES, 2, True),
        ("isr", INCLUDES, 3, False),
        ("isr", INCLUDES, (1, 2), True),
        ("isr", INCLUDES, (1, 3), False),
        ("isr", EXCLUDES, 3, True),
        ("isr", EXCLUDES, 2, False),
        ("isr", IS, (2, 1), True),
        ("isr", IS, (1,), False),
        ("topic", IS, "t", True),
        ("topic", IS, "u", False),
        ("topic", EXCLUDES, "u", True),
        ("key", IS, "t-0", True),
        ("key", IS, "t-1", False),
        ("partition_epoch", IS, 5, True),
        ("broker_epoch", IS, 11, True),
        ("broker_epoch", EXCLUDES, 11, False),
        ("metadata", IS, False, True),
        ("transactional_id", IS, "x", False),
        ("transactional_id", EXCLUDES, "x", False),
    ],
)
def test_clauses_ask_for_what_the_frame_says(
    field: str, operator: Operator, value: Any, *, expected: bool
) -> None:
    assert meets(JOIN, field, operator, value) is expected


def test_errors_are_of_responses() -> None:
    assert meets(JOINED, "error", IS, "NONE")
    assert not meets(JOIN, "error", IS, "NONE")


def test_flags_are_compared_as_such() -> None:
    assert meets(BEAT, "fenced", IS, value=False)
    assert meets(BEAT, "fetch_offset", IS, 7)


def test_one_item_has_to_meet_all_clauses() -> None:
    kind = load_response_schema(56, 3)
    response = example(kind)
    one, two = (
        replace(response.topics[0].partitions[0], partition_index=index, leader_epoch=index)
        for index in (1, 2)
    )
    topics = (replace(response.topics[0], partitions=(one, two)),)
    frame = replace(JOINED, data=response_frame(replace(response, topics=topics), 1))

    def both(partition: int, epoch: int) -> bool:
        where = (
            Clause(field="partition", operator=IS, value=partition),
            Clause(field="leader_epoch", operator=IS, value=epoch),
        )
        return fits(frame, direction=Direction.RESPONSE, where=where)

    answers = {pair: both(*pair) for pair in itertools.product((1, 2), repeat=2)}
    assert answers == {(1, 1): True, (1, 2): False, (2, 1): False, (2, 2): True}


def fetched(*types: int) -> Frame:
    """A Fetch response with one metadata record of each of these types."""
    values = [b"\1" + encoded_unsigned(one) + b"\0" + b"body" for one in types]
    records = b"".join(
        encoded_record(offset_delta=at, value=value) for at, value in enumerate(values)
    )
    batch = BatchHeader(
        base_offset=5,
        length=49 + len(records),
        leader_epoch=1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=len(types) - 1,
        base_timestamp_ms=0,
        max_timestamp_ms=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=len(types),
        position=0,
    )
    response = example(load_response_schema(1, 12))
    [topic] = response.responses
    [partition] = topic.partitions
    partition = replace(partition, records=encoded_batch_header(batch, records) + records)
    topic = replace(topic, topic=METADATA_TOPIC, partitions=(partition,))
    return replace(
        JOINED,
        header=Header(1, 12, 1, "1", answered=True),
        data=response_frame(replace(response, responses=(topic,)), 1),
    )


def test_a_fetch_of_the_metadata_log_can_be_told_by_the_records_it_carries() -> None:
    frame = fetched(20, 5, 20)
    assert meets(frame, "metadata", IS, value=True)
    assert meets(frame, "record_type", INCLUDES, "PartitionChangeRecord")
    assert meets(frame, "record_type", IS, ("PartitionChangeRecord", "NoOpRecord"))
    assert not meets(frame, "record_type", INCLUDES, "RegisterBrokerRecord")
    assert meets(fetched(20), "record_type", EXCLUDES, "PartitionChangeRecord")
    assert not meets(JOINED, "record_type", INCLUDES, "PartitionChangeRecord")


def test_damaged_records_have_no_types() -> None:
    frame = fetched(5)
    at = frame.data.index(b"body")
    damaged = replace(frame, data=frame.data[:at] + b"BODY" + frame.data[at + 4 :])
    assert not meets(damaged, "record_type", INCLUDES, "PartitionChangeRecord")


def test_lowering_a_version_concerns_the_answers_to_api_versions() -> None:
    lower = rule(Match(sources=(LINK.source,)), LowerVersion(api="Fetch", max_version=12))
    header = Header(18, 3, 1, "1", answered=True)
    matcher = Matcher(lower)
    assert matcher.fits_header(LINK, Direction.RESPONSE, header)
    assert not matcher.fits_header(LINK, Direction.REQUEST, header)
    assert not matcher.fits_header(LINK, Direction.RESPONSE, header._replace(api_key=1))
    elsewhere = replace(LINK, source=NodeName("broker-9"))
    assert not matcher.fits_header(elsewhere, Direction.RESPONSE, header)


@pytest.mark.parametrize(
    ("match", "action", "message"),
    [
        (Match(api="AlterIsr"), Hold(), "Kafka has no API AlterIsr"),
        (Match(), LowerVersion(api="Nope", max_version=1), "Kafka has no API Nope"),
        (Match(), Answer(error="NOT_AN_ERROR"), "Kafka has no error NOT_AN_ERROR"),
        (Match(direction=Direction.RESPONSE), Answer(error="NONE"), "Answer applies to requests"),
        (Match(direction=Direction.RESPONSE), Duplicate(), "Duplicate applies to requests"),
        (Match(direction=Direction.RESPONSE), Reorder(), "Reorder applies to requests"),
        (
            Match(where=(Clause(field="isrs", operator=IS, value=1),)),
            Hold(),
            "no field isrs; there are broker_epoch",
        ),
        (
            Match(where=(Clause(field="record_type", operator=IS, value="PartitionChange"),)),
            Hold(),
            "no record type PartitionChange; there are RegisterBrokerRecord",
        ),
    ],
)
def test_a_rule_that_can_concern_nothing_is_refused(
    match: Match, action: Action, message: str
) -> None:
    with pytest.raises(UsageError, match=f"^rule it: {message}"):
        refuse_impossible(rule(match, action))


def test_a_batch_header_here_is_one_that_kafka_would_write() -> None:
    [found] = struct.unpack(">i", fetched(5).data[:4])
    assert found == len(fetched(5).data) - 4
