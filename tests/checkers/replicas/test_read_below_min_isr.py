"""D21 and D22: records that were read, or became visible, while the ISR was too small."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from histories import history
from metadata_logs import asked, doubts, facts, metadata_log, proofs, tables
from proving import assert_proof, only

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.replicas.read_below_min_isr import (
    commits_below_min_isr,
    reads_below_min_isr,
)
from fencepost.history.cluster_schema import METADATA_OFFSETS, NODE_SETTINGS

LOG = """
    1 register 1 at -9000
    2 unfence 1 at -9000
    3 feature eligible.leader.replicas.version 1 at -9000
    5 topic t at -8000
    6 config t min.insync.replicas 2 at -8000
    7 partition t-0 replicas 1,2 isr 1,2 leader 1 at -8000
    20 change t-0 isr 1 at {shrunk}
    30 change t-0 isr 1,2 at {grown}
    90 noop at 9000
"""
Kernel = Callable[[dict[str, pa.Table], Facts], Any]


def records(
    sent: int = 3000, call: int = 3010, back: int = 3050, *, send: str = "info"
) -> pa.Table:
    """A record that is sent and read at these times, in ms."""
    return history(f"""
        p1 send t-0 v17 -> {send} in {sent * 1_000_000}..{sent * 1_000_000 + 1}
        c1 poll -> t-0 [v17@3] in {call * 1_000_000}..{back * 1_000_000}
        c2 poll -> t-0 [v17@3] in 8000000000..8000000001
    """).records


def judged(
    kernel: Kernel,
    read: pa.Table,
    *,
    log: str = LOG,
    shrunk: int = 1000,
    grown: int = 6000,
    known: int | None = 1500,
) -> list[tuple[str, Found]]:
    beats = [
        {
            "time_ns": known * 1_000_000,
            "node": "broker-1",
            "metadata_offset": 20,
            "source": "heartbeat",
        }
        for _ in range(known is not None)
    ]
    given = tables(
        log.format(shrunk=shrunk, grown=grown),
        records=read,
        metadata_offsets=pa.Table.from_pylist(beats, schema=METADATA_OFFSETS),
        node_settings=NODE_SETTINGS.empty_table(),
    )
    return list(asked(kernel, given, facts()))


def committed(read: pa.Table, **others: Any) -> list[tuple[str, Found]]:
    return judged(commits_below_min_isr, read, **others)


def test_a_record_that_was_sent_and_read_while_the_isr_is_too_small_is_found() -> None:
    answers = committed(records())
    assert_proof(
        only(proofs(answers), "t-0"),
        "{count} records at offset {first} were sent and first read between {min} and {max}",
        count=1,
        first=3,
        min=3000,
        max=3050,
        metadata_offset=20,
        leader=1,
        isr="[1]",
        replicas="[1, 2]",
        setting="min.insync.replicas",
        wanted=2,
    )
    assert answers[0][1].case_count == 1


@pytest.mark.parametrize(
    ("shrunk", "grown"), [(2950, 6000), (3020, 6000), (1000, 3100), (1000, 2000)]
)
def test_the_isr_may_have_been_large_enough_at_some_time(shrunk: int, grown: int) -> None:
    assert not proofs(committed(records(), shrunk=shrunk, grown=grown))


def test_a_record_that_was_there_before_may_have_been_committed_before() -> None:
    assert not proofs(committed(records(900)))
    assert not proofs(committed(records(send="fail").filter(pa.array([False, True, True]))))


def test_a_large_isr_is_a_case_that_holds() -> None:
    answers = committed(records(3000), shrunk=6000, grown=7000, known=None)
    assert [one.case_count for _, one in answers] == [0]
    answers = committed(records(3000), shrunk=6000, grown=7000)
    assert [(one.case_count, one.never_count) for _, one in answers] == [(1, 0)]


def test_a_leader_that_may_not_have_known_is_not_accused() -> None:
    for known in (None, 2100):
        assert not proofs(committed(records(), known=known))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("version 1 at", "version 0 at"),
        ("    3 feature eligible.leader.replicas.version 1 at -9000\n", ""),
        ("    30 ", "    25 feature eligible.leader.replicas.version 0 at 5000\n    30 "),
        ("min.insync.replicas 2", "min.insync.replicas 1"),
        ("replicas 1,2 isr 1,2", "replicas 1 isr 1"),
        ("change t-0 isr 1,2", "change t-0 isr 1,2 recovering"),
    ],
)
def test_without_eligible_leader_replicas_or_with_an_unclean_election_nothing_is_promised(
    old: str, new: str
) -> None:
    assert LOG.replace(old, new) != LOG
    answers = committed(records(), log=LOG.replace(old, new))
    assert [(one.case_count, one.never_count) for _, one in answers] == [(0, 0)]


def test_what_was_read_below_min_isr_is_counted_and_legal() -> None:
    ((key, found),) = judged(reads_below_min_isr, records(900))
    assert (key, found.never_count, found.allowed_count, found.case_count) == ("t-0", 0, 1, 1)
    (anomaly,) = anomalies_of(found.table)
    assert_proof(anomaly, "were first read between {min}", count=1, first=3, min=3010, max=3050)
    ((_, large),) = judged(reads_below_min_isr, records(900), shrunk=6000, grown=7000)
    assert (large.allowed_count, large.case_count) == (0, 1)
    ((_, unsure),) = judged(reads_below_min_isr, records(900), shrunk=3020)
    assert (unsure.allowed_count, unsure.case_count) == (0, 0)


def test_without_a_log_of_record_or_any_record_nothing_is_judged() -> None:
    for kernel in (reads_below_min_isr, commits_below_min_isr):
        given = tables(
            metadata_log(),
            records=records(),
            metadata_offsets=METADATA_OFFSETS.empty_table(),
            node_settings=NODE_SETTINGS.empty_table(),
        )
        assert list(doubts(asked(kernel, given, facts()))) == ["metadata"]
        assert not list(asked(kernel, {**given, "records": records().slice(0, 0)}, facts()))
