"""Histories in and out of files: the same ones come back, and malformed ones leave nothing."""

import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from sealed_runs import sealed_table

from fencepost.harness.histories.built_run import KAFKA
from fencepost.harness.histories.files import Import, exported, imported
from fencepost.harness.histories.format import Format
from fencepost.history.failure import UsageError
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.models import MODEL_TABLES, OPEN_MODELS, Isolation, Model
from fencepost.history.open.edn import edn_text
from fencepost.history.open.scalars import ORIGINALS_FILE, Originals
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import MODEL_OPERATIONS
from fencepost.history.seal import seal

pytestmark = pytest.mark.slow

Line = dict[str, Any]
REGISTERS = (Model.VERSIONED_REGISTER, Model.REGISTER, Model.LOG, Model.SET, Model.COUNTER)


def take_in(
    content: bytes,
    root: Path,
    *,
    model: str,
    notation: Format = Format.JSONL,
    independent: bool = False,
) -> RunDirectory:
    root.mkdir(parents=True, exist_ok=True)
    file = root / "history.txt"
    file.write_bytes(content)
    isolation = Isolation.SERIALIZABLE if model == Model.LIST_APPEND else None
    what = Import(
        path=file,
        format=notation,
        model=model,
        name="h",
        isolation=isolation,
        keyed_values=independent,
    )
    return imported(what, results=root / "results").run


def jsonl(lines: list[Line]) -> bytes:
    return "".join(json.dumps(line) + "\n" for line in lines).encode()


def out(run: RunDirectory, notation: Format, *, events: bool = False) -> bytes:
    file = io.BytesIO()
    exported(run, file, notation=notation, as_events=events)
    return file.getvalue()


def told(run: RunDirectory) -> list[Line]:
    """The operations by index, with their values as they were before they were numbered."""
    model = Model(read_manifest(run.manifest_path).model)
    table = sealed_table(run, MODEL_TABLES[model])
    order = [(name, "ascending") for name in table.column_names[:2]]
    kept = run.history / ORIGINALS_FILE
    originals = Originals(pq.read_table(kept) if kept.is_file() else None)

    def as_it_was(row: Line, name: str, number: int | None) -> Any:
        if number is None or (name == "expected" and model is Model.VERSIONED_REGISTER):
            return number
        return edn_text(originals.value(row["key"], number))

    rows = table.sort_by(order).to_pylist()
    for row in rows:
        for name in {"expected", "value"} & row.keys():
            row[name] = as_it_was(row, name, row[name])
        if row["values"] is not None:
            row["values"] = [as_it_was(row, "values", one) for one in row["values"]]
    return rows


SCALARS = st.integers(0, 9) | st.sampled_from(["x", "7", ":y", True, 0.5, {"keyword": "y"}])
KEYS = st.sampled_from([1, "1", "k", {"keyword": "k"}])


def columns(model: Model, draw: Callable[[Any], Any], *, ok: bool) -> Line:
    """The columns of one operation, whichever the model has."""
    value = draw(st.integers(-9, 9) if model is Model.COUNTER else SCALARS)
    version, or_none = draw(st.integers(0, 5)), draw(st.sampled_from([value, None]))
    if model is Model.SET:
        if draw(st.booleans()):
            return {"f": "add", "value": value}
        return {"f": "read", **({"values": draw(st.lists(SCALARS, max_size=3))} if ok else {})}
    if model is Model.COUNTER:
        if draw(st.booleans()):
            return {"f": "add", "value": value}
        return {"f": "read", **({"value": value} if ok else {})}
    if model is Model.LOG:
        if draw(st.booleans()):
            return {"f": "append", "value": value, **({"version": version} if ok else {})}
        return {"f": "read", "version": version, **({"value": or_none} if ok else {})}
    made = {"version": version} if ok and model is Model.VERSIONED_REGISTER else {}
    match draw(st.sampled_from(["read", "write", "cas"])):
        case "read":
            return {"f": "read", **({"value": or_none} if ok else {}), **made}
        case "write":
            return {"f": "write", "value": value, **made}
    expected = version if model is Model.VERSIONED_REGISTER else or_none
    return {"f": "cas", "expected": expected, "value": value, **made}


def steps(draw: Callable[[Any], Any], *, ok: bool) -> Line:
    some = [
        ["append", draw(KEYS), draw(SCALARS)]
        if draw(st.booleans())
        else ["r", draw(KEYS), draw(st.lists(SCALARS, max_size=3)) if ok else None]
        for _ in range(draw(st.integers(1, 3)))
    ]
    return {"f": "txn", "value": some}


@st.composite
def histories(draw: Callable[[Any], Any], model: Model, *, keyed: bool = True) -> list[Line]:
    """Complete lines; some processes touch, some calls are at one time."""
    now, following, free = 0, 3, {0: 0, 1: 0, 2: 0}
    lines: list[Line] = []
    for _ in range(draw(st.integers(0, 12))):
        now += draw(st.integers(0, 2))
        idle = [process for process, since in free.items() if since <= now]
        process = draw(st.sampled_from(idle)) if idle else following
        following += not idle
        outcome = draw(st.sampled_from(["ok", "ok", "fail", "info"]))
        line: Line = {"process": process, "call_ns": now, "outcome": outcome}
        if outcome == "info":
            free.pop(process, None)
        else:
            line["return_ns"] = free[process] = now + draw(st.integers(0, 4))
        if outcome != "ok" and draw(st.booleans()):
            line["error"] = draw(st.sampled_from(["timeout", "no-leader"]))
        ok = outcome == "ok"
        if model is Model.LIST_APPEND:
            line |= steps(draw, ok=ok)
        else:
            line |= columns(model, draw, ok=ok) | ({"key": draw(KEYS)} if keyed else {})
        lines.append({name: item for name, item in line.items() if item is not None})
    return lines


@pytest.mark.parametrize("model", OPEN_MODELS)
# An example is stored a dozen times over: to shrink one takes longer than to read it.
@settings(max_examples=max(1, settings().max_examples // 20), phases=[Phase.generate])
@given(data=st.data())
def test_what_is_exported_is_imported_the_same(model: Model, data: st.DataObject) -> None:
    keyed = data.draw(st.booleans())
    lines = data.draw(histories(model, keyed=keyed))
    with TemporaryDirectory() as root:
        first = take_in(jsonl(lines), Path(root, "first"), model=model)
        expected = told(first)
        assert len({row.get("index", row.get("transaction")) for row in expected}) == len(lines)
        independent = keyed and bool(lines) and model is not Model.LIST_APPEND
        for number, (notation, events, pairs) in enumerate(
            [
                (Format.JSONL, False, False),
                (Format.JSONL, True, False),
                (Format.EDN, False, independent),
                (Format.PARQUET, False, False),
            ]
        ):
            again = take_in(
                out(first, notation, events=events),
                Path(root, str(number)),
                model=model,
                notation=notation,
                independent=pairs,
            )
            assert told(again) == expected, notation


def test_a_run_of_znodes_is_given_out_in_no_format(tmp_path: Path) -> None:
    run = take_in(b"", tmp_path, model=Model.REGISTER)
    manifest = read_manifest(run.manifest_path)
    write_manifest(run.manifest_path, dataclasses.replace(manifest, model=Model.ZNODE))
    for notation in Format:
        with pytest.raises(UsageError, match=r"model znode.* are in Parquet: .*znode_operations"):
            out(run, notation)


def test_lines_without_times_happen_one_after_the_other(tmp_path: Path) -> None:
    text = """
    {:type :invoke, :process 0, :f :write, :value 1}
    {:type :invoke, :process 1, :f :read, :value nil}
    {:type :ok, :process 0, :f :write, :value 1}
    {:type :ok, :process 1, :f :read, :value 1}
    """
    run = take_in(text.encode(), tmp_path, model=Model.REGISTER, notation=Format.EDN)
    rows = told(run)
    assert [(row["f"], row["call_ns"], row["return_ns"]) for row in rows] == [
        ("write", 1, 3),
        ("read", 2, 4),
    ]


def test_a_nemesis_is_counted_and_left_out(tmp_path: Path) -> None:
    file = tmp_path / "h.edn"
    file.write_text(
        "{:type :info, :process :nemesis, :f :kill, :value nil, :time 1}\n"
        "{:type :invoke, :process 0, :f :read, :value nil, :time 2}\n"
    )
    what = Import(path=file, format=Format.EDN, model=Model.REGISTER, name="h")
    done = imported(what, results=tmp_path / "results")
    assert done.left_out["of a nemesis"] == 1
    assert [row["outcome"] for row in told(done.run)] == ["info"]


def test_an_import_is_sealed_and_sealing_it_again_does_nothing(tmp_path: Path) -> None:
    run = take_in(jsonl([]), tmp_path, model=Model.REGISTER)
    before = read_manifest(run.manifest_path)
    seal(run)
    assert read_manifest(run.manifest_path) == before
    assert before.model == Model.REGISTER
    assert before.run_id == f"h/{run.root.name}"
    assert sorted(path.name for path in run.root.iterdir()) == ["history", "manifest.json"]


WRITE = {
    "process": 0,
    "f": "write",
    "call_ns": 1,
    "return_ns": 2,
    "outcome": "ok",
    "value": 1,
    "index": 4,
}
INVOKE = {"type": "invoke", "process": 0, "f": "write", "value": 1, "time": 5}
OK = INVOKE | {"type": "ok", "time": 6}


@pytest.mark.parametrize(
    ("lines", "line", "expected"),
    [
        ([WRITE, WRITE], 2, "expected an index above 4; found 4"),
        ([WRITE, WRITE | {"index": 5}], 2, "expected one open operation of process 0"),
        ([WRITE | {"return_ns": 0}], 1, "expected a return at or after the call, 1 ns; found 0 ns"),
        (
            [WRITE, WRITE | {"index": 5, "call_ns": 0, "process": 1}],
            2,
            "expected operations in the order of their calls",
        ),
        (
            [WRITE | {"f": "wriite"}],
            1,
            "expected f of a register: read, write, cas; found 'wriite'",
        ),
        ([WRITE | {"value": None}], 1, "expected value of this write; found none"),
        ([WRITE | {"version": 3}], 1, "expected no version of this write; found 3"),
        ([WRITE | {"call_ns": "1"}], 1, "expected call_ns: an integer from 0 on; found '1'"),
        ([WRITE | {"call_ns": True}], 1, "expected call_ns: an integer from 0 on; found True"),
        ([WRITE | {"process": "p"}], 1, "expected process: an integer; found 'p'"),
        ([WRITE | {"outcome": "okay"}], 1, "expected outcome ok, fail, info; found 'okay'"),
        ([WRITE | {"vaule": 3}], 1, "expected the fields "),
        ([WRITE | {"value": [1]}], 1, "expected a value: an integer, a string"),
        ([WRITE | {"key": 1.5}], 1, "expected a key: an integer, a string or a keyword; found 1.5"),
        (
            [WRITE | {"outcome": "info"}, WRITE | {"call_ns": 9, "return_ns": 9, "index": 9}],
            2,
            "expected no more of process 0, which ended with the info of line 1",
        ),
        ([OK], 1, "expected an invocation of process 0 before its ok; found none"),
        ([INVOKE, INVOKE], 2, "expected one open operation of process 0; found a second one"),
        ([INVOKE, OK | {"f": "read"}], 2, "expected the end of the write of line 1; found one of"),
        ([INVOKE, OK | {"time": 4}], 2, "expected a return at or after the call of line 1, 5 ns"),
        ([INVOKE, OK | {"value": 2}], 2, "expected an answer with the value of its invocation, 1"),
        ([INVOKE | {"index": 3}, OK | {"index": 3}], 2, "expected an index above 3; found 3"),
        ([INVOKE | {"type": "begin"}], 1, "expected type invoke, ok, fail, info; found 'begin'"),
        ([INVOKE | {"process": None}], 1, "expected process: an integer; found None"),
        ([INVOKE, {**OK, "time": None}], 2, "expected a time on every line or on none"),
        ([INVOKE, OK | {"type": "info"}, INVOKE], 3, "expected no more of process 0, which ended"),
        ([INVOKE, OK | {"key": 3}], 2, "expected an answer of key object; found 3"),
    ],
)
def test_a_line_that_makes_no_sense_is_refused_and_nothing_is_left(
    lines: list[Line], line: int, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError) as refused:
        take_in(jsonl(lines), tmp_path, model=Model.REGISTER)
    assert str(refused.value).startswith(f"{tmp_path / 'history.txt'}:{line}: {expected}")
    assert [path.name for path in tmp_path.iterdir()] == ["history.txt"]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b'{"type": "invoke", "process": 0, "f": "read"}\n{"a": 1,', "2: expected JSON"),
        (b"[1]\n", "1: expected a JSON object; found (1,)"),
        (b'\n{"a": 1, "a": 2}\n', "2: expected each name once"),
        (b'{"a": NaN}\n', "1: expected JSON; found NaN"),
        (b'{"type": "invoke", "process": 0, "f": "read"}\n\xff\n', "2: expected UTF-8"),
        (b'{"type": "invoke", "f": "read", "process": ' + b"[" * 100_000, "1: expected"),
    ],
)
def test_what_is_no_text_or_json_is_refused(content: bytes, expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        take_in(content, tmp_path, model=Model.REGISTER)
    assert f"history.txt:{expected}" in str(refused.value)
    assert [path.name for path in tmp_path.iterdir()] == ["history.txt"]


def parquet(changes: dict[str, list[Any]]) -> bytes:
    columns: dict[str, list[Any]] = {
        "index": [0, 1, 2],
        "process": [0, 1, 0],
        "key": ["k", "k", "k"],
        "f": ["write", "read", "cas"],
        "call_ns": [0, 1, 5],
        "return_ns": [4, 3, None],
        "outcome": ["ok", "ok", "info"],
        "error": [None, None, "timeout"],
        "expected": [None, None, 7],
        "version": [None, None, None],
        "value": [7, None, 8],
        "values": [None, None, None],
    }
    sink = io.BytesIO()
    fields = [field.with_nullable(True) for field in MODEL_OPERATIONS]
    pq.write_table(pa.table(columns | changes, schema=pa.schema(fields)), sink)
    return sink.getvalue()


@pytest.mark.parametrize(
    ("changes", "row", "expected"),
    [
        ({"index": [0, 2, 1]}, 2, "expected index to follow the order of the calls"),
        ({"index": [0, 0, 1]}, 2, "expected each index from 0 on, once"),
        ({"index": [0, 1, 3]}, 3, "expected each index from 0 on, once"),
        ({"process": [0, 0, 1]}, 2, "expected one open operation of a process at a time"),
        ({"return_ns": [4, 0, None]}, 2, "expected a return at or after the call"),
        ({"return_ns": [None, 3, None]}, 1, "expected a return_ns of what is not info"),
        ({"outcome": ["ok", "ko", "info"]}, 2, "expected an outcome"),
        ({"f": ["write", "add", "cas"]}, 2, "expected f read, write, cas"),
        ({"key": ["k", None, "k"]}, 2, "expected a key"),
        ({"value": [None, None, 8]}, 1, "expected value of this write"),
        ({"version": [None, 1, None]}, 2, "expected no version of this read"),
        ({"values": [None, [1], None]}, 2, "expected no values of this read"),
        ({"values": [None, [None], None]}, 2, "expected values without null"),
        ({"outcome": ["ok", "fail", "info"], "value": [7, 7, 8]}, 2, "expected no value of this"),
        ({"call_ns": [-1, 1, 5]}, 1, "expected call_ns from 0 on"),
    ],
)
def test_a_row_that_makes_no_sense_is_refused(
    changes: dict[str, list[Any]], row: int, expected: str, tmp_path: Path
) -> None:
    good = take_in(parquet({}), tmp_path / "good", model=Model.REGISTER, notation=Format.PARQUET)
    assert len(told(good)) == 3
    with pytest.raises(UsageError) as refused:
        take_in(parquet(changes), tmp_path / "bad", model=Model.REGISTER, notation=Format.PARQUET)
    assert f"history.txt:{row}: {expected}" in str(refused.value)


def test_another_schema_is_refused(tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(pa.table({"index": ["0"]}), sink)
    with pytest.raises(UsageError, match="expected column index of type int64; found string"):
        take_in(sink.getvalue(), tmp_path, model=Model.REGISTER, notation=Format.PARQUET)


def test_what_is_no_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected Parquet"):
        take_in(b"PAR1", tmp_path, model=Model.REGISTER, notation=Format.PARQUET)


KAFKA_EDN = b"""
{:type :invoke, :f :assign, :value [5 6], :process 0, :time 1}
{:type :ok, :f :assign, :value [5 6], :process 0, :time 2}
{:type :invoke, :f :send, :value [[:send 5 140] [:send 5 141]], :process 1, :time 3}
{:type :ok, :f :send, :value [[:send 5 [0 140]] [:send 5 [1 141]]], :process 1, :time 4}
{:type :invoke, :f :send, :value [[:send 6 142]], :process 1, :time 5}
{:type :info, :f :send, :value [[:send 6 142]], :process 1, :time 6, :error :timeout}
{:type :invoke, :f :poll, :value [[:poll]], :process 0, :time 7}
{:type :ok, :f :poll, :value [[:poll {5 [[0 140] [1 141]], 6 [[0 142]]}]], :process 0, :time 8}
{:type :invoke, :f :assign, :value [5], :process 0, :time 9}
{:type :ok, :f :assign, :value [5], :process 0, :time 10}
{:type :invoke, :f :assign, :value [5 6], :process 0, :time 11}
{:type :ok, :f :assign, :value [5 6], :process 0, :time 12}
{:type :invoke, :f :txn, :value [[:send 5 143] [:poll]], :process 0, :time 13}
{:type :ok, :f :txn, :value [[:send 5 [4 143]] [:poll {6 [[0 142]]}]], :process 0, :time 14}
{:type :invoke, :f :crash, :value nil, :process 0, :time 15}
{:type :info, :f :crash, :value nil, :process 0, :time 16}
{:type :invoke, :f :final-read, :value [[:poll]], :process 2, :time 17}
{:type :ok, :f :final-read, :value [[:poll {5 []}]], :process 2, :time 18}
"""


def test_clients_of_kafka_become_operations_and_records(tmp_path: Path) -> None:
    run = take_in(KAFKA_EDN, tmp_path, model=KAFKA, notation=Format.EDN)
    operations = sealed_table(run, "operations").to_pylist()
    assert [
        (row["index"], row["f"], row["key"], row["outcome"], row["record_count"])
        for row in operations
    ] == [
        (0, "send", "5", "ok", 2),
        (1, "send", "6", "info", 1),
        (2, "poll", None, "ok", 3),
        (3, "send", "5", "ok", 1),
        (4, "poll", None, "ok", 1),
        (5, "final-read", "5", "ok", 0),
    ]
    records = sealed_table(run, "records").to_pylist()
    assert {
        (row["operation"], row["key"], row["offset"], row["value"], row["session"])
        for row in records
    } == {
        (0, "5", 0, 140, 0),
        (0, "5", 1, 141, 0),
        (1, "6", None, 142, 0),
        (2, "5", 0, 140, 0),
        (2, "5", 1, 141, 0),
        (2, "6", 0, 142, 0),
        (3, "5", 4, 143, 0),
        (4, "6", 0, 142, 1),
    }
    manifest = read_manifest(run.manifest_path)
    assert (manifest.promises.consume, manifest.end_ns) == ("assign", 18)


@pytest.mark.parametrize(
    ("notation", "events"), [(Format.JSONL, False), (Format.JSONL, True), (Format.EDN, False)]
)
def test_clients_of_kafka_come_back_the_same(
    notation: Format, *, events: bool, tmp_path: Path
) -> None:
    run = take_in(KAFKA_EDN, tmp_path / "first", model=KAFKA, notation=Format.EDN)
    written = out(run, notation, events=events)
    again = take_in(written, tmp_path / "again", model=KAFKA, notation=notation)
    # A process that sent and polled in one transaction does so in two operations now, which no
    # process has open at once: the one goes to another.
    lanes = {row["operation"] for row in sealed_table(run, "records").to_pylist()} & {4}
    for name in ("operations", "records"):
        table, other = sealed_table(run, name), sealed_table(again, name)
        if events or notation is Format.EDN:
            assert lanes
            kept = [column for column in table.column_names if column not in ("process", "session")]
            table, other = table.select(kept), other.select(kept)
        assert table.equals(other)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("{:type :invoke, :f :push, :value [], :process 0}", "expected f of a client of Kafka"),
        ("{:type :invoke, :f :send, :value [[:sned 5 1]], :process 0}", "expected a step [:send"),
        ("{:type :invoke, :f :send, :value nil, :process 0}", "expected steps [:send …]"),
    ],
)
def test_what_no_client_of_kafka_does_is_refused(line: str, expected: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as refused:
        take_in(line.encode(), tmp_path, model=KAFKA, notation=Format.EDN)
    assert expected in str(refused.value)
