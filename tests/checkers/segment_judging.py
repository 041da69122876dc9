"""A key judged in segments, in this process, of a file with small row groups."""

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from checkers.catalogue import KEY_CHECKS
from checkers.data_plane.key_check import KeyCheck
from checkers.data_plane.key_log import Setting
from checkers.data_plane.large.files import Limits, large_keys_of
from checkers.data_plane.large.jobs import Parcel, judge_parcels
from checkers.data_plane.large.keys import large_key_rows, surveys_wanted
from checkers.data_plane.large.survey import Grain
from checkers.runner.table_pieces import outline
from checkers.runner.tables import SealedFile

__all__ = ["HereJobs", "rows_in_segments"]

Row = dict[str, Any]


class HereJobs:
    """Tasks one after the other; everything is pickled on its way, as it is with Spark."""

    def __init__(self) -> None:
        self.exchange_count = 0
        self.job_count = 0

    def results(self, tasks: Sequence[Callable[[], Any]]) -> list[Any]:
        self.job_count += bool(tasks)
        return [_sent(_sent(task)()) for task in tasks]

    def exchanged(
        self,
        tasks: Sequence[Callable[[], Iterable[Parcel]]],
        judge: Callable[[int, Sequence[Any]], Any],
    ) -> dict[int, Any]:
        self.exchange_count += 1
        received: dict[int, list[Any]] = {}
        for task in reversed(tasks):  # An exchange keeps no order.
            for number, content in _sent(task)():
                received.setdefault(number, []).append(_sent(content))
        return {
            number: judge_parcels(number, parcels, judge) for number, parcels in received.items()
        }


def rows_in_segments(
    records: pa.Table,
    setting: Setting,
    path: Path,
    *,
    piece_rows: int,
    grain: Grain,
    jobs: HereJobs | None = None,
    checks: Mapping[str, KeyCheck] = KEY_CHECKS,
) -> list[Row]:
    """FINDINGS of every key of these records, without seconds; all keys count as large."""
    pq.write_table(records, path, row_group_size=piece_rows, store_schema=False)
    file = SealedFile(path=str(path), digest="")
    keys = large_keys_of(file, outline(file), Limits(key_rows=0))
    port = jobs or HereJobs()
    surveys = port.results(surveys_wanted(keys, setting, grain))
    rows = large_key_rows(keys, surveys, setting=setting, checks=checks, jobs=port, grain=grain)
    return [{name: row[name] for name in row if name not in ("seconds", "path")} for row in rows]


def _sent(content: Any) -> Any:
    return pickle.loads(pickle.dumps(content))
