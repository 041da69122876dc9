"""What JSON and Parquet can say, and a history cannot hold, is refused by its line."""

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.history.models import MODEL_TABLES, Model
from fencepost.history.open.lines import json_objects
from fencepost.history.open.parquet import parquet_tables
from fencepost.history.open.refusal import MalformedHistoryError
from fencepost.history.schema import TABLES


def test_half_a_pair_is_no_text() -> None:
    lines = iter(['{"key": "\\ud83d\\ude00"}\n', '{"key": "\\ud800"}\n'])
    found = json_objects(lines, source="h.jsonl")
    assert next(found) == (1, {"key": "\U0001f600"})
    with pytest.raises(MalformedHistoryError, match=r"h\.jsonl:2: expected Unicode; found half a"):
        next(found)


def test_twin_columns_are_refused() -> None:
    schema = TABLES[MODEL_TABLES[Model.REGISTER]]
    table = schema.empty_table()
    file = io.BytesIO()
    pq.write_table(table.append_column("index", pa.array([], pa.int64())), file)
    file.seek(0)
    with pytest.raises(MalformedHistoryError, match="expected one column index; found 2"):
        list(parquet_tables(file, model=Model.REGISTER, source="h.parquet"))
