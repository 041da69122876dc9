"""Claims and what proved them: kept by a command, and shown as they are."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Fencepost

from fencepost.harness.series.claims import (
    CLAIMS_BEGIN,
    CLAIMS_END,
    Claim,
    claims_table,
    prove,
    read_claims,
    read_record,
    write_record,
)
from fencepost.history.failure import HarnessError, UsageError

ROOT = Path(__file__).parents[3]
RECORDS = ROOT / "results/track-record/claims"


def claim(code: str) -> Claim:
    return Claim(says="two and two are four", command=f"{sys.executable} -c '{code}'")


def test_the_page_shows_the_claims_and_the_records_that_are_kept() -> None:
    page = (ROOT / "docs/claims.md").read_text()
    shown = page.partition(f"{CLAIMS_BEGIN}\n")[2].partition(CLAIMS_END)[0]
    assert shown == claims_table(read_claims(ROOT / "results/claims.toml"), RECORDS), "make docs"


def test_every_claim_has_the_record_that_proves_it() -> None:
    claims = read_claims(ROOT / "results/claims.toml")
    records = {name: read_record(name, RECORDS) for name in claims}
    proven = {name for name, record in records.items() if record and record.proves(claims[name])}
    missing = [f"fencepost claim {name}" for name in claims if name not in proven]
    assert not missing, "or claim it no longer"


def test_what_came_of_the_command_is_kept(tmp_path: Path) -> None:
    claimed, heard = claim("print(1); print(); print(2 + 2)"), list[str]()
    record = prove("sums", claimed, say=heard.append)
    assert heard == ["1", "", "4"]
    assert (record.exit_code, record.last_lines) == (0, ("1", "4"))
    assert {"cores", "memory_bytes", "python", "system"} <= record.machine.keys()
    write_record(record, tmp_path / "claims")
    again = read_record("sums", tmp_path / "claims")
    assert again == record
    assert again.proves(claimed)
    assert read_record("others", tmp_path / "claims") is None


def test_a_record_proves_its_own_words_and_command_alone_and_only_if_it_ended_well() -> None:
    claimed = claim("raise SystemExit(3)")
    record = prove("sums", claimed, say=lambda _: None)
    assert record.exit_code == 3
    assert not record.proves(claimed)
    well = replace(record, exit_code=0)
    assert well.proves(claimed)
    assert not well.proves(replace(claimed, says="two and two are five"))
    assert not well.proves(claim("pass"))


def test_the_table_says_what_proved_a_claim_and_what_would(tmp_path: Path) -> None:
    proved, other = claim("print(2 + 2)"), claim("print(5)")
    record = replace(
        prove("sums", proved, say=lambda _: None),
        started_at="2026-03-01T08:00:00+00:00",
        seconds=90.0,
        machine={"cores": "2", "memory_bytes": str(24 << 30)},
    )
    write_record(record, tmp_path)
    lines = claims_table({"sums": proved, "more": other}, tmp_path).splitlines()
    assert lines[2].endswith("| 1 March 2026, 2 cores, 24 GiB, 90.0 s: `4` |")
    assert lines[3].endswith("| **no record**: `fencepost claim more` |")


def test_the_command_keeps_a_record_and_lists_what_has_none(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    words = json.dumps(claim("print(2 + 2)").command)
    listed = f"[sums]\nsays = 'sums'\ncommand = {words}\n[more]\nsays = 'more'\ncommand = 'false'\n"
    (tmp_path / "claims.toml").write_text(listed)
    ended = fencepost("claim", "sums", results=tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "proved  sums: sums\n")
    assert fencepost("claim", "more", results=tmp_path).returncode == 1
    ended = fencepost("claim", results=tmp_path)
    assert ended.returncode == 1
    assert ended.stdout == "proved  sums: sums\nNO RECORD  more: more\n"
    assert fencepost("claim", "sum", results=tmp_path).returncode == 254


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[a]\nsays = 'a'\n", "a: "),
        ("[a]\nsays = 'a'\ncommand = 'b'\npage = 'c'\n", "unknown key 'page'"),
        ("[a", "claims.toml: "),
    ],
)
def test_what_is_no_list_of_claims_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(UsageError, match=says):
        read_claims(tmp_path / "claims.toml")


def test_what_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sums.json").write_text("{}")
    with pytest.raises(HarnessError, match="is not the record of a claim"):
        read_record("sums", tmp_path)
