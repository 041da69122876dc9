"""C23: settings of a topic that a broker shows and the log never gave it."""

from collections.abc import Mapping

import pyarrow as pa
import pytest
from metadata_logs import FACTS, asked, case_count, doubts, metadata_log, proofs, tables
from proving import assert_proof

from fencepost.checkers.control_plane.unlogged_setting import unlogged_settings
from fencepost.checkers.proof import Proof
from fencepost.history.request_schema import TOPIC_SETTINGS

LOG = """
    1 topic t as id-a at 1000
    2 config t retention.ms 1000 at 1000
    3 delete t as id-a at 2000
    4 topic t as id-b at 3000
    5 config t cleanup.policy Compact,Delete at 4000
    6 config t min.cleanable.dirty.ratio .50 at 5000
    9 noop at 9000
"""
SHORT = {"retention.ms": "1000"}


def row(
    topic_id: str, settings: Mapping[str, str | None], *, call_ms: int = 3500
) -> dict[str, object]:
    return {
        "node": "broker-3",
        "call_ns": call_ms * 1_000_000,
        "return_ns": (call_ms + 5) * 1_000_000,
        "topic": "t",
        "topic_id": topic_id,
        "settings": [{"name": name, "value": value} for name, value in settings.items()],
    }


def judged(*rows: dict[str, object], log: str = LOG) -> tuple[list[Proof], int]:
    """The proofs, and how many cases there were."""
    shown = pa.Table.from_pylist(list(rows), schema=TOPIC_SETTINGS)
    found = list(asked(unlogged_settings, tables(log, topic_settings=shown), FACTS))
    return proofs(found).get("t", []), case_count(found)


def test_a_new_topic_has_a_setting_of_the_deleted_one_of_its_name() -> None:
    (proof,), cases = judged(row("id-b", SHORT), row("id-b", {}))
    assert cases == 2
    assert_proof(
        proof,
        "the metadata log never gave that topic these settings",
        node="broker-3",
        name="retention.ms",
        value="1000",
        topic="t",
        topic_id="id-b",
        called=3500.0,
        given_offset=2,
        other_topic_id="id-a",
    )


def test_a_setting_that_no_topic_was_given_is_found_without_an_origin() -> None:
    (proof,), _ = judged(row("id-b", {"retention.ms": "7"}))
    assert "given_offset" not in {fact.name for fact in proof.facts}


@pytest.mark.parametrize(
    "shown",
    [
        row("id-a", SHORT),
        row("id-a", {}),
        row("id-b", {}),
        row("id-b", {"cleanup.policy": "delete, compact"}, call_ms=4500),
        # As old as it likes, and values as they were parsed.
        row("id-b", {"cleanup.policy": "compact,delete"}, call_ms=8000),
        row("id-b", {"cleanup.policy": "compact,delete", "min.cleanable.dirty.ratio": "0.5"}),
    ],
    ids=["of-the-first", "before-it", "none", "reordered", "old", "parsed"],
)
def test_what_the_topic_once_had_is_right(shown: dict[str, object]) -> None:
    assert judged(shown) == ([], 1)


def test_settings_that_it_never_had_together_are_wrong() -> None:
    replaced = LOG.replace("6 config", "6 config t cleanup.policy Delete at 4500\n    7 config")
    both = {"cleanup.policy": "delete", "min.cleanable.dirty.ratio": "0.5"}
    assert judged(row("id-b", both), log=replaced) == ([], 1)
    (proof,), _ = judged(row("id-b", both | {"cleanup.policy": "compact,delete"}), log=replaced)
    assert proof.fact("topic_id") == "id-b"


@pytest.mark.parametrize(
    ("shown", "log"),
    [
        (row("id-c", SHORT), LOG),
        (row("id-b", SHORT, call_ms=9000), LOG),
        (row("id-b", SHORT), LOG.replace("4 topic", "snapshot 4 topic")),
    ],
    ids=["never-created", "after-the-log", "of-a-snapshot"],
)
def test_nothing_is_judged_of_a_life_that_is_not_wholly_known(
    shown: dict[str, object], log: str
) -> None:
    assert judged(shown, log=log) == ([], 0)


def test_a_removed_topic_is_judged_after_the_end_of_the_log_too() -> None:
    assert judged(row("id-a", {"retention.ms": "7"}, call_ms=9500))[1] == 1


def test_without_a_log_of_record_it_is_unknown() -> None:
    shown = pa.Table.from_pylist([row("id-b", SHORT)], schema=TOPIC_SETTINGS)
    given = tables(metadata_log(broker_1=LOG), topic_settings=shown)
    assert doubts(asked(unlogged_settings, given, FACTS))


def test_a_creation_may_begin_with_the_settings_as_it_does_up_to_3_3() -> None:
    first = """
        1 config t min.insync.replicas 1 at 1000
        2 config t retention.ms 1000 at 1000
        3 topic t as id-a at 1000
        4 delete t as id-a at 2000
        6 topic t as id-b at 3000
        9 noop at 9000
    """
    assert judged(row("id-a", SHORT | {"min.insync.replicas": "1"}), log=first) == ([], 1)
    # The settings of the topic that is gone are not those of the next one.
    (proof,), _ = judged(row("id-b", SHORT), log=first)
    assert proof.fact("given_offset") == 2
