"""KAFKA-14139 on real Apache Kafka: the late AlterPartition stands on the tape, and its answer.

One run of `scenarios/bugs/kip-903.yaml` on the last release that has the bug, and one on one that
has not; how often it shows is the track record's.
"""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commands import Fencepost
from sealed_runs import sealed_table

from fencepost.history.run_directory import RunDirectory

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

KIP_903 = ("run", "kip-903", "--seed", "1", "--json")

Frame = dict[str, Any]


def _frames(run: RunDirectory, api: str, direction: str) -> list[Frame]:
    return [
        row
        for row in sealed_table(run, "wire").to_pylist()
        if (row["api"], row["direction"]) == (api, direction) and row["topic"] in (None, "t")
    ]


def _late_join(run: RunDirectory) -> tuple[Frame, Frame]:
    """The AlterPartition that was held for the longest, and its answer.

    It was sent while broker 2 had its first registration, and passed on after its second.
    """
    # A sender that waits for half a minute asks again, and that is held as well.
    held = [row for row in _frames(run, "AlterPartition", "request") if row["rule"] == "join"]
    join = min(held, key=lambda row: row["time_ns"])
    assert (join["source"], join["action"], sorted(join["isr"])) == ("broker-1", "released", [1, 2])
    of_broker_2 = [
        row for row in _frames(run, "BrokerRegistration", "request") if row["broker_id"] == 2
    ]
    begun: dict[str, int] = {}  # of each incarnation, the first: one may have to repeat it
    for row in of_broker_2:
        begun.setdefault(row["incarnation_id"], row["time_ns"])
    first, second = begun.values()
    assert first < join["time_ns"] < second < join["forwarded_ns"]
    (answer,) = [
        row
        for row in _frames(run, "AlterPartition", "response")
        if (row["connection"], row["correlation_id"])
        == (join["connection"], join["correlation_id"])
    ]
    return join, answer


def _epochs_of_broker_2(run: RunDirectory) -> list[int]:
    """Its broker epochs, as the controller gave them to it."""
    return [
        row["broker_epoch"]
        for row in _frames(run, "BrokerRegistration", "response")
        if (row["source"], row["error"]) == ("broker-2", "NONE")
    ]


def test_3_4_1_takes_the_late_join_and_loses_what_was_acknowledged(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost(*KIP_903, "--kafka", "3.4.1", results=tmp_path)
    assert ended.said["as_expected"] is True
    join, answer = _late_join(ended.run)
    # Version 2 knows no epochs of members.
    assert (join["api_version"], join["isr_epochs"]) == (2, None)
    assert (answer["error"], sorted(answer["isr"])) == ("NONE", [1, 2])
    assert {"stale-epoch-join", "lost-write"} <= ended.violated
    proofs = pq.read_table(ended.run.anomalies / "stale-epoch-join.parquet").to_pylist()
    (proof,) = [proof for proof in proofs if proof["key"] == "t-0"]
    assert proof["frames"] == [join["frame"], answer["frame"]]
    assert proof["values"] == _epochs_of_broker_2(ended.run)


def test_4_3_1_answers_the_late_join_with_ineligible_replica_and_loses_nothing(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost(*KIP_903, "--kafka", "4.3.1", results=tmp_path)
    assert ended.said["as_expected"] is True
    join, answer = _late_join(ended.run)
    first, second = _epochs_of_broker_2(ended.run)
    assert join["api_version"] >= 3
    named = dict(zip(join["isr"], join["isr_epochs"], strict=True))
    assert named[2] == first < second
    assert answer["error"] == "INELIGIBLE_REPLICA"
    assert ended.said["validity"] == "valid"
    assert ended.said["checks"]["lost-write"]["validity"] == "valid"
