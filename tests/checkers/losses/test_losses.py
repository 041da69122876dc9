"""Forensics: what became of lost values, and how."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from histories import history
from metadata_logs import FACTS, tables
from replica_disks import disks, faults, sends

from fencepost.checkers.losses.forensics import (
    Forensics,
    Loss,
    ValueFate,
    read_forensics,
    write_forensics,
)
from fencepost.checkers.losses.rows import LostValues
from fencepost.checkers.losses.stories import losses
from fencepost.history.cluster_schema import NODE_SETTINGS
from fencepost.history.failure import HarnessError

LOG = """
    1 register 1
    2 unfence 1
    3 register 2
    4 unfence 2
    5 topic t
    6 partition t-0 replicas 1,2 isr 1,2 leader 1
    10 change t-0 isr 1 leader 1
    11 noop at 1500
    28 fence 2 at 12000
    33 register 2 at 20000
    34 unfence 2 at 20500
    36 change t-0 isr 1,2 at 22000
    43 change t-0 isr 2 leader 2 at 22500
    90 noop at 30000
"""
TAPE = """
    at 300 broker-2 register -> ok 3 at 310
    at 19990 broker-2 register -> ok 33 at 20010
    at 9812 passed 21990 broker-1 alter t-0 expecting 1 isr 1,2 -> ok 2 at 22010
"""
SENDS = "17@0 at 700..800\n18@1 at 2000..2100\n19@2 at 2100..2200"
EMPTY = "broker-1: 27@0:2 hw 1\nbroker-2: 27@0:2 hw 1"
WIPED = (("kill", "broker-2", 11000), ("wipe", "broker-2", 13000), ("pause", "broker-1", 26000))


def lost(
    lines: str = EMPTY,
    log: str = LOG,
    events: tuple[tuple[str, str, int], ...] = WIPED,
    values: tuple[int, ...] = (17, 18, 19),
    outcome: str = "ok",
    *,
    reads: str = "",
    tape: str = TAPE,
) -> list[Loss]:
    given = tables(
        log,
        tape,
        **disks(lines),
        records=pa.concat_tables([sends(SENDS, outcome=outcome), history(reads).records]),
        faults=faults(*events),
        node_settings=NODE_SETTINGS.empty_table(),
    )
    missing = LostValues(key="t-0", checks=dict.fromkeys(values, ("unseen",)), offsets={})
    return list(losses(missing, given, FACTS))


def test_what_one_truncation_took_is_one_story() -> None:
    (loss,) = lost()
    assert loss.fate is ValueFate.LOST
    assert (loss.first_offset, loss.last_offset, loss.count) == (0, 2, 3)
    assert [(one.node, one.to_offset, one.fault) for one in loss.truncations] == [
        ("broker-1", 0, None),
        ("broker-2", None, "wipe"),
    ]
    assert not any(one.held_count for one in loss.replicas)


def test_a_story_has_its_epochs_frames_records_and_faults() -> None:
    (loss,) = lost()
    assert [(one.isr, one.count, one.broker_epoch) for one in loss.acknowledgements] == [
        ((1, 2), 1, 1),
        ((1,), 2, 1),
    ]
    assert loss.join is not None
    assert (loss.join.frame, loss.join.judged_epoch, loss.join.registered_epoch) == (20, 3, 33)
    assert loss.join.stale
    assert loss.election is not None
    assert (loss.election.leader_epoch, loss.election.log_end_offset) == (2, 0)
    assert [note.metadata_offset for note in loss.metadata] == [10, 28, 33, 34, 36, 43]
    assert loss.metadata[2].text == "broker 2 registered with broker epoch 33, fenced"
    assert [one.fault for one in loss.faults] == ["kill", "wipe"]


def test_a_join_under_an_epoch_of_no_fetch_is_told_with_the_one_that_was_fetched_under() -> None:
    fetched = """
        at 300 broker-2 register -> ok 3 at 310
        at 19990 broker-2 register -> ok 33 at 20010
        at 9000 passed 21900 broker-2 to broker-1 fetches t-0 epoch 3 -> nothing
        at 21990 broker-1 alter t-0 expecting 1 isr 1:1,2:33 -> ok 2 at 22010
    """
    (loss,) = lost(tape=fetched)
    assert loss.join is not None
    assert (loss.join.stale, loss.join.judged_epoch, loss.join.registered_epoch) == (True, 3, 33)
    (loss,) = lost(tape=fetched.replace("epoch 3 ->", "epoch 33 ->"))
    assert loss.join is not None
    assert (loss.join.stale, loss.join.judged_epoch) == (False, None)


def test_a_story_tells_what_consumers_had_read_while_the_isr_was_too_small() -> None:
    asking = LOG.replace("6 partition", "6 config t min.insync.replicas 2\n    7 partition")
    reads = "c1 poll -> t-0 [v17@0 v18@1] in 3000000000..3050000000"
    (loss,) = lost(log=asking, reads=reads)
    (early,) = loss.early_reads
    assert (early.leader, early.isr, early.count, early.min_isr) == (1, (1,), 2, 2)
    assert not lost(reads=reads)[0].early_reads
    early_enough = reads.replace("in 3000000000..3050000000", "in 740000000..780000000")
    assert not lost(log=asking, reads=early_enough)[0].early_reads


def test_values_that_stand_apart_are_stories_of_their_own() -> None:
    kept = "broker-1: 18@1 19@2 27@3:2 hw 4\nbroker-2: 18@1 19@2 27@3:2 hw 4"
    first, second = lost(kept)
    assert (first.fate, first.count) == (ValueFate.LOST, 1)
    assert (second.fate, second.first_offset, second.count) == (ValueFate.UNREAD, 1, 2)
    assert [(one.node, one.held_count) for one in second.replicas] == [
        ("broker-1", 2),
        ("broker-2", 2),
    ]


@pytest.mark.parametrize(
    ("lines", "fate"),
    [
        ("broker-1: 17@0 hw 1\nbroker-2: 27@0:2 hw 1", ValueFate.UNREACHABLE),
        ("broker-1: 17@0 damaged\nbroker-2: 17@0 hw 1", ValueFate.UNREAD),
        ("broker-1: nothing damaged\nbroker-2: 27@0:2 hw 1", ValueFate.UNCERTAIN),
        ("broker-2: 27@0:2 hw 1", ValueFate.UNCERTAIN),
    ],
)
def test_where_a_value_is(lines: str, fate: ValueFate) -> None:
    (loss,) = lost(lines, values=(17,))
    assert loss.fate is fate


def test_a_leader_that_was_a_member_all_along_did_not_join() -> None:
    log = LOG.replace("10 change t-0 isr 1 leader 1\n", "").replace(
        "36 change t-0 isr 1,2 at 22000\n", ""
    )
    (loss,) = lost(EMPTY.replace(":2", ":1"), log, values=(17,))
    assert loss.join is None
    assert loss.election is not None
    assert loss.election.leader == 2
    assert [one.fault for one in loss.truncations if one.node == "broker-2"] == ["wipe"]


def test_an_unacknowledged_value_and_a_topic_that_the_log_does_not_know() -> None:
    (loss,) = lost(outcome="info", values=(17,))
    assert not loss.acknowledgements
    assert (loss.key, loss.first_offset) == ("t-0", 0)
    (loss,) = lost(log="0 leader 1000", values=(17,))
    assert loss.fate is ValueFate.UNCERTAIN
    assert loss.election is None


def test_forensics_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = tmp_path / "forensics.json"
    assert read_forensics(path) is None
    forensics = Forensics(
        run_id="r", counts={"unseen": 3}, losses=tuple(lost()), troubles=("t-1: torn",)
    )
    write_forensics(path, forensics)
    assert read_forensics(path) == forensics
    older = json.loads(path.read_text())
    del older["losses"][0]["early_reads"]
    path.write_text(json.dumps(older))
    assert read_forensics(path) == forensics


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"format_version": 1}', '{"format_version": 1, "run_id": 7, "counts": {}}'],
)
def test_forensics_that_are_none_are_refused_by_their_path(tmp_path: Path, content: str) -> None:
    path = tmp_path / "forensics.json"
    path.write_text(content)
    with pytest.raises(HarnessError, match=str(path)):
        read_forensics(path)
