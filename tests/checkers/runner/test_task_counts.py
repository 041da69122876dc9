"""How work is cut into Spark tasks, and what its calls share."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from metadata_logs import FACTS, facts, metadata_log
from pyspark.sql import SparkSession

from checkers.metadata.view import view
from checkers.runner.tables import SealedFile, byte_count, task_count

MB = 1 << 20


@pytest.mark.parametrize(
    ("pieces", "megabytes", "count"),
    [
        (16, 0, 4),  # small files share tasks, and every core has one
        (3, 0, 3),  # never more tasks than pieces
        (16, 9, 9),
        (16, 500, 16),  # a large file has one for itself
        (0, 0, 1),
    ],
)
def test_small_pieces_of_work_share_a_task(pieces: int, megabytes: int, count: int) -> None:
    context: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=4))
    spark = cast("SparkSession", context)
    assert task_count(spark, pieces, bytes_in_all=megabytes * MB) == count


def test_a_file_that_is_not_there_has_no_bytes(tmp_path: Path) -> None:
    path = tmp_path / "some"
    assert byte_count(SealedFile(path=str(path), digest="")) == 0
    path.write_bytes(b"123")
    assert byte_count(SealedFile(path=str(path), digest="")) == 3


def test_a_log_is_replayed_once_for_all_checks_that_share_its_table() -> None:
    tables = {"metadata_log": metadata_log("1 register 1")}
    seen = view(tables, FACTS)
    assert view(tables, FACTS) is seen
    assert view({"metadata_log": metadata_log("1 register 1")}, FACTS) is not seen
    assert view(tables, facts(brokers=5)).facts != seen.facts
