"""Writes of metadata number each other: one that is missing leaves a hole."""

import pytest
from metadata_histories import told

from fencepost.checkers.visibility.whole_writes import missing_write

WHOLE = """
    create A 0 10-20
    grow   2   30-40
    alter  2   50-60!
    delete     70-80
    create B 4 90-100
    reads b1 =0 25-26
    reads b1 =4 110-120
"""


def test_a_whole_table_counts_growths_and_failed_writes() -> None:
    assert missing_write(told(WHOLE)) == ""
    # The last one leaves no hole.
    assert missing_write(told(WHOLE + "delete 130-140")) == ""
    assert missing_write(told("")) == ""


@pytest.mark.parametrize("gone", ["create A 0 10-20", "grow   2   30-40", "delete     70-80"])
def test_a_write_that_is_missing_leaves_a_hole(gone: str) -> None:
    assert gone in WHOLE
    said = missing_write(told(WHOLE.replace(gone, "")))
    assert "carries the count of those before it" in said


def test_a_number_that_nobody_wrote_is_of_a_missing_write() -> None:
    said = missing_write(told(WHOLE + "reads b1 =5 130-140"))
    assert said == "a read showed 5 of m-000001, and no recorded write carries it"
    early = missing_write(told(WHOLE + "reads b1 =4 85-89"))
    assert early.endswith("before the write of it was called")
