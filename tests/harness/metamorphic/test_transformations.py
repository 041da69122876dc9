"""Each transformation does what it says, and nothing else: of one small stored run."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.transformation import Transformation, transformation_of
from fencepost.harness.metamorphic.transformations import TRANSFORMATIONS
from fencepost.harness.seeds import stream
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.store import store_trial
from fencepost.history.failure import UsageError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import TABLES
from fencepost.history.writer import bucket_file, bucket_of

HOUR_NS = 3_600_000_000_000
DAY_MS = 86_400_000
Do = Callable[..., CopiedRun]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    root = tmp_path_factory.mktemp("runs") / "run"
    return store_trial(drawn_plan(11), without_rules=(), root=root, name="s").run


@pytest.fixture
def before(original: RunDirectory, tmp_path: Path) -> CopiedRun:
    return CopiedRun(original, tmp_path / "before")


@pytest.fixture
def do(original: RunDirectory, tmp_path: Path) -> Iterator[Do]:
    """Carry out a transformation on a copy, and see that the original keeps its bytes."""
    there = {path: path.read_bytes() for path in original.root.rglob("*.parquet")}

    def done(name: str, *, seed: int = 1) -> CopiedRun:
        copy = CopiedRun(original, tmp_path / f"{name}-{seed}")
        assert transformation_of(name, TRANSFORMATIONS).change(copy, stream(seed, name))
        copy.seal()
        return copy

    yield done
    assert {path: path.read_bytes() for path in original.root.rglob("*.parquet")} == there


def changed(one: CopiedRun, other: CopiedRun) -> set[str]:
    """The tables that differ, row for row."""
    return {name for name in TABLES if one.has(name) and one.table(name) != other.table(name)}


def rows_of(table: pa.Table) -> Counter[str]:
    return Counter(json.dumps(row, sort_keys=True) for row in table.to_pylist())


def test_every_name_is_one_transformation() -> None:
    names = [one.name for one in TRANSFORMATIONS]
    assert len(set(names)) == len(names)
    with pytest.raises(UsageError, match="did you mean 'cut-short'"):
        transformation_of("cut-shor", TRANSFORMATIONS)


@pytest.mark.parametrize("name", [one.name for one in TRANSFORMATIONS])
def test_a_transformation_does_something_and_the_same_again(
    name: str, do: Do, before: CopiedRun, tmp_path: Path
) -> None:
    after = do(name)
    assert changed(before, after)
    for path, digest in after.manifest.digests.items():
        assert (after.run.root / path).is_file(), digest
    after.run.root.rename(tmp_path / "first")
    first = CopiedRun(RunDirectory(tmp_path / "first"), tmp_path / "copy")
    again = do(name)
    assert not changed(first, again)
    assert again.manifest == first.manifest


def test_another_day_is_another_date_of_every_wall_clock(do: Do, before: CopiedRun) -> None:
    after = do("another-day")
    assert changed(before, after) == {"metadata_log", "replica_records"}
    moved_ns = after.manifest.origin_utc_ns - before.manifest.origin_utc_ns
    assert moved_ns % (DAY_MS * 1_000_000) == 0
    for name in ("metadata_log", "replica_records"):
        old, new = (one.table(name)["timestamp_ms"].to_numpy() for one in (before, after))
        assert set((new - old)[old > 0].tolist()) == {moved_ns // 1_000_000}
        assert (new == old)[old <= 0].all()


def test_begun_earlier_is_an_hour_in_every_time_of_the_run(do: Do, before: CopiedRun) -> None:
    after = do("begun-earlier")
    for name in before.tables:
        for field in TABLES[name]:
            old, new = before.table(name)[field.name], after.table(name)[field.name]
            moved = pc.add(old, HOUR_NS) if field.name.endswith("_ns") else old
            assert new.equals(moved), (name, field.name)
    old_manifest, new_manifest = before.manifest, after.manifest
    assert new_manifest.end_ns == (old_manifest.end_ns or 0) + HOUR_NS
    # The wall clock showed the same at the same moments.
    assert new_manifest.origin_utc_ns == old_manifest.origin_utc_ns - HOUR_NS


def test_renamed_nodes_are_nowhere_called_as_before(do: Do, before: CopiedRun) -> None:
    after = do("nodes-renamed")
    told = after.run.manifest_path.read_text()
    for node in before.manifest.node_ids:
        assert f'"{node}"' not in told
        for name in after.tables:
            assert f'"{node}"' not in json.dumps(after.table(name).to_pylist()), name
    assert [*after.manifest.node_ids.values()] == [*before.manifest.node_ids.values()]
    assert {one.rpartition("-")[0] for one in after.manifest.node_ids} == {"broker", "controller"}
    assert after.table("wire")["frame"].equals(before.table("wire")["frame"])


def test_renamed_topics_lie_in_the_files_of_their_keys(do: Do, before: CopiedRun) -> None:
    after = do("topics-renamed")
    old, new = before.manifest.keys, after.manifest.keys
    assert len(set(new)) == len(old)
    assert not set(new) & set(old)
    for name in ("records", "replica_records"):
        for path in after.run.table_path(name).glob("*.parquet"):
            keys = set(pq.read_table(path)["key"].to_pylist())
            assert not keys & set(old)
            assert all(
                bucket_file(after.run.history, bucket_of(key)).name == path.name for key in keys
            )
        values = [Counter(one.table(name)["value"].to_pylist()) for one in (before, after)]
        assert values[0] == values[1]
    topics = [set(one.table("metadata_log")["topic"].to_pylist()) for one in (before, after)]
    assert not {key.rpartition("-")[0] for key in old} & topics[1]


def test_late_answers_are_passed_on_later_and_before_what_follows(
    do: Do, before: CopiedRun
) -> None:
    after = do("answers-late")
    assert changed(before, after) == {"wire"}
    late = 0
    for old, new in zip(
        before.table("wire").to_pylist(), after.table("wire").to_pylist(), strict=True
    ):
        if old != new:
            late += 1
            assert old["direction"] == "response"
            assert 0 < new["forwarded_ns"] - old["forwarded_ns"] <= 200_000_000
            assert old | {"forwarded_ns": new["forwarded_ns"]} == new
    assert late > 50


def test_clocks_are_apart_by_controller(do: Do, before: CopiedRun) -> None:
    after = do("clocks-apart")
    assert changed(before, after) == {"metadata_log"}
    old, new = before.table("metadata_log"), after.table("metadata_log")
    skews: dict[int, set[int]] = {}
    for was, now in zip(old.to_pylist(), new.to_pylist(), strict=True):
        if was["timestamp_ms"] > 0:
            skew = now["timestamp_ms"] - was["timestamp_ms"]
            skews.setdefault(was["controller_epoch"], set()).add(skew)
    assert all(len(of_one) == 1 for of_one in skews.values())
    assert all(abs(skew) <= 30 for of_one in skews.values() for skew in of_one)
    assert any(skew for of_one in skews.values() for skew in of_one)


@pytest.mark.parametrize(
    ("name", "table"),
    [
        ("tape-permuted", "wire"),
        ("describes-permuted", "describes"),
        ("log-permuted", "metadata_log"),
    ],
)
def test_what_is_permuted_has_the_same_rows(
    name: str, table: str, do: Do, before: CopiedRun
) -> None:
    after = do(name)
    assert changed(before, after) == {table}
    assert rows_of(after.table(table)) == rows_of(before.table(table))


def test_a_frame_that_is_there_twice_is_told_twice(do: Do, before: CopiedRun) -> None:
    after = do("frames-twice")
    assert changed(before, after) == {"wire"}
    old, new = rows_of(before.table("wire")), rows_of(after.table("wire"))
    assert set(new) == set(old)
    assert set((new - old).values()) == {1}


def lost(before: CopiedRun, after: CopiedRun, table: str) -> list[dict[str, object]]:
    """The rows that are gone; no other is there, and no other table differs."""
    assert changed(before, after) == {table}
    old, new = rows_of(before.table(table)), rows_of(after.table(table))
    assert not new - old
    return [json.loads(row) for row in (old - new).elements()]


def test_lost_frames_are_lost_with_all_their_items(do: Do, before: CopiedRun) -> None:
    after = do("frames-lost")
    gone = {row["frame"] for row in lost(before, after, "wire")}
    assert not gone & set(after.table("wire")["frame"].to_pylist())
    assert 0 < len(gone) < 0.05 * before.table("wire")["frame"].to_numpy().max()


def test_lost_requests_are_of_one_kind(do: Do, before: CopiedRun) -> None:
    gone = lost(before, do("requests-lost"), "wire")
    assert {row["direction"] for row in gone} == {"request"}
    assert len({str(row["api"]) for row in gone}) == 1


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("head-of-tape-lost", 0.0, 0.1),
        ("tail-of-tape-lost", 0.9, 1.0),
        ("hole-in-tape", 0.1, 0.9),
    ],
)
def test_a_stretch_of_the_tape_is_lost_whole(
    name: str, first: float, last: float, do: Do, before: CopiedRun
) -> None:
    after = do(name)
    gone = [int(str(row["time_ns"])) for row in lost(before, after, "wire")]
    times = before.table("wire")["time_ns"].to_numpy()
    begin, length = times.min(), times.max() - times.min()
    assert begin + first * length - 1 <= min(gone)
    assert max(gone) <= begin + last * length + 1
    kept = after.table("wire")["time_ns"].to_numpy()
    assert not ((kept >= min(gone)) & (kept <= max(gone))).any()


def test_a_broker_off_the_tape_is_on_no_frame(do: Do, before: CopiedRun) -> None:
    gone = lost(before, do("broker-off-tape"), "wire")
    ends = [{str(row["source"]), str(row["target"])} for row in gone]
    (off,) = set.intersection(*ends) if len(ends) > 1 else ends[0]
    assert off.startswith("broker-")


def test_a_lost_describe_is_gone_whole(do: Do, before: CopiedRun) -> None:
    after = do("describes-lost")
    gone = {row["read"] for row in lost(before, after, "describes")}
    assert not gone & set(after.table("describes")["read"].to_pylist())


def test_lost_acknowledgements_are_unknown_to_their_clients(do: Do, before: CopiedRun) -> None:
    after = do("acknowledgements-lost")
    assert changed(before, after) == {"operations", "records"}
    for table, number in (("operations", "index"), ("records", "operation")):
        unknown = {
            new[number]
            for old, new in zip(
                before.table(table).to_pylist(), after.table(table).to_pylist(), strict=True
            )
            if old != new and (old["f"], old["outcome"], new["outcome"]) == ("send", "ok", "info")
        }
        assert unknown
        known = before.table(table).filter(
            pc.and_(
                pc.equal(before.table(table)["f"], "send"),
                pc.equal(before.table(table)["outcome"], "ok"),
            )
        )
        assert len(unknown) == len(set(known[number].to_pylist())) // 20


def test_every_second_write_of_metadata_is_lost(do: Do, before: CopiedRun) -> None:
    after = do("metadata-writes-lost")
    assert changed(before, after) == {"metadata_writes"}
    old, new = before.table("metadata_writes"), after.table("metadata_writes")
    assert abs(2 * len(new) - len(old)) <= 1
    assert new["index"].to_pylist() == list(range(len(new)))
    assert set(new["call_ns"].to_pylist()) < set(old["call_ns"].to_pylist())


def test_lost_records_are_few(do: Do, before: CopiedRun) -> None:
    gone = lost(before, do("records-lost"), "records")
    assert 0 < len(gone) < 0.05 * len(before.table("records"))


def test_one_bucket_is_lost(do: Do, before: CopiedRun) -> None:
    after = do("bucket-lost")
    gone = lost(before, after, "replica_records")
    assert len({bucket_of(str(row["key"])) for row in gone}) == 1
    assert gone
    assert len(list(after.run.table_path("replica_records").glob("*.parquet"))) == len(
        list(before.run.table_path("replica_records").glob("*.parquet"))
    )


def test_a_recording_that_is_cut_short_knows_nothing_of_later(do: Do, before: CopiedRun) -> None:
    after = do("cut-short")
    assert (after.manifest.end_ns, after.manifest.healed_ns) == (None, None)
    cut_ns = max(after.table("wire")["time_ns"].to_pylist())
    assert cut_ns < max(before.table("wire")["time_ns"].to_pylist())
    operations = after.table("operations").to_pylist()
    ended = {row["index"]: row["outcome"] for row in before.table("operations").to_pylist()}
    opened = [row for row in operations if row["outcome"] != ended[row["index"]]]
    assert all((row["outcome"], row["return_ns"]) == ("info", None) for row in opened)
    assert max(row["return_ns"] or 0 for row in operations) <= cut_ns + 500_000_000
    assert len(operations) < len(ended)


@pytest.mark.parametrize("one", TRANSFORMATIONS, ids=lambda one: one.name)
def test_every_one_can_be_tried_on_tables_without_rows(
    one: Transformation, original: RunDirectory, tmp_path: Path
) -> None:
    copy = CopiedRun(original, tmp_path / "bare")
    for name in list(copy.tables):
        copy.change(name, lambda rows: rows.slice(0, 0))
    one.change(copy, stream(1, one.name))
