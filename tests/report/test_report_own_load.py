"""The load on metadata in a sequence picture: counted, unless something was done to it."""

from dataclasses import replace

from fencepost.report.frames import PASSED, ShownFrame
from fencepost.report.metadata_notes import DecisionNote
from fencepost.report.own_load import is_of_load, without_load

_FRAME = ShownFrame(
    number=1,
    connection=1,
    correlation_id=1,
    source="clients",
    target="broker-1",
    is_request=True,
    time_ns=0,
    forwarded_ns=0,
    action=PASSED,
    rule=None,
    api="CreateTopics",
    api_version=7,
    items=({"topic": "m-000002"},),
    item_count=1,
    errors=(),
)


def _kept(*frames: ShownFrame, topics: tuple[str, ...] = ("t",), proven: int = 0) -> list[int]:
    kept, _ = without_load(frames, topics=topics, proven={proven})
    return [frame.number for frame in kept]


def test_a_request_about_other_topics_is_folded_with_its_answer() -> None:
    answer = replace(_FRAME, number=2, is_request=False, items=({},))
    kept, counts = without_load([_FRAME, answer], topics={"t"}, proven=())
    assert (kept, counts) == ((), {"CreateTopics": 2})


def test_what_is_about_the_run_s_topics_or_kafka_s_own_is_drawn() -> None:
    mine = replace(_FRAME, items=({"topic": "m-000002"}, {"topic": "t"}), item_count=2)
    internal = replace(_FRAME, items=({"topic": "__cluster_metadata"},))
    assert _kept(mine) == [1]
    assert _kept(internal) == [1]


def test_what_was_disturbed_or_proves_something_is_drawn() -> None:
    answer = replace(_FRAME, number=2, is_request=False, action="dropped")
    assert _kept(_FRAME, answer) == [1, 2]
    assert _kept(_FRAME, proven=1) == [1]


def test_nothing_is_folded_that_is_not_known_in_full() -> None:
    assert _kept(replace(_FRAME, item_count=3)) == [1]
    assert _kept(replace(_FRAME, items=({},))) == [1]
    assert _kept(_FRAME, topics=()) == [1]


def test_a_decision_about_other_topics_alone_is_folded() -> None:
    note = DecisionNote(time_ns=0, metadata_offset=1, kind="isr", words="ISR [1]", details=())
    assert is_of_load(replace(note, about=("m-000002-0",)), topics={"t"})
    assert not is_of_load(replace(note, about=("m-000002-0", "t-0")), topics={"t"})
    assert not is_of_load(note, topics={"t"})
