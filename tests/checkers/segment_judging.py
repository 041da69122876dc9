"""A key judged in segments, in this process, of a file with small row groups."""

import pickle
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.large.files import Limits, large_keys_of
from fencepost.checkers.data_plane.large.jobs import Jobs
from fencepost.checkers.data_plane.large.keys import large_key_rows, surveys_wanted
from fencepost.checkers.data_plane.large.survey import Grain
from fencepost.checkers.runner.table_pieces import outline
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.runner.tasks import InProcessTasks, Parcel
from fencepost.checkers.setting import Setting

Row = dict[str, Any]


@dataclass
class HereTasks:
    """Tasks of this process, counted; an exchange keeps no order."""

    cores: int = 1
    job_count: int = 0
    exchange_count: int = 0

    def parcels(self, deal: Any, count: int, *, judge: Any, **others: Any) -> list[Parcel]:
        if judge is None:
            self.job_count += 1
        else:
            self.exchange_count += 1
        sent = pickle.loads(pickle.dumps(deal))
        return InProcessTasks().parcels(
            lambda numbers: iter([*sent(numbers)][::-1]), count, judge=judge, **others
        )


def rows_in_segments(
    records: pa.Table,
    setting: Setting,
    path: Path,
    *,
    piece_rows: int,
    grain: Grain,
    session: HereTasks | None = None,
    checks: Mapping[str, KeyCheck] = KEY_CHECKS,
) -> list[Row]:
    """FINDINGS of every key of these records, without seconds; all keys count as large."""
    pq.write_table(records, path, row_group_size=piece_rows, store_schema=False)
    file = SealedFile(path=str(path), digest="")
    keys = large_keys_of(file, outline(file), Limits(key_rows=0))
    jobs = Jobs(session=session or HereTasks(), budget_s=60)
    surveys = jobs.answers(surveys_wanted(keys, setting, grain))
    rows = large_key_rows(keys, surveys, setting=setting, checks=checks, jobs=jobs, grain=grain)
    return [{name: row[name] for name in row if name not in ("seconds", "path")} for row in rows]
