"""A run as a Perfetto trace, parsed by the official descriptors."""

from collections import Counter
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent
from story_runs import STORY
from synthetic_run import write_run

from fencepost.harness.cli.main import main
from fencepost.history.run_directory import RunDirectory
from fencepost.report.perfetto import write_trace

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return write_run(tmp_path_factory.mktemp("run"), STORY)


@pytest.fixture(scope="module")
def trace(run: RunDirectory) -> Trace:
    path = run.root / "run.pftrace"
    write_trace(run, path)
    found = Trace()
    found.ParseFromString(path.read_bytes())
    return found


def tracks(trace: Trace) -> dict[int, tuple[str, ...]]:
    named = {
        p.track_descriptor.uuid: p.track_descriptor
        for p in trace.packet
        if p.HasField("track_descriptor")
    }
    return {
        uuid: (*([named[one.parent_uuid].name] if one.HasField("parent_uuid") else []), one.name)
        for uuid, one in named.items()
    }


def begun(trace: Trace, kind: str) -> list:
    names = tracks(trace)
    return [
        packet
        for packet in trace.packet
        if packet.HasField("track_event")
        and packet.track_event.type != TrackEvent.TYPE_SLICE_END
        and names[packet.track_event.track_uuid][-1] == kind
    ]


def test_the_counts_are_those_of_the_tables(run: RunDirectory, trace: Trace) -> None:
    files = run.table_path("operations").glob("*.parquet")
    assert len(begun(trace, "operations")) == sum(len(pq.read_table(file)) for file in files)
    wire = pq.read_table(run.table_path("wire"))
    assert len(begun(trace, "frames")) + len(begun(trace, "held")) == len(
        set(wire["frame"].to_pylist())
    )
    assert len(begun(trace, "held")) == pc.sum(pc.equal(wire["action"], "released")).as_py()
    faults = pq.read_table(run.table_path("faults"))["targets"].to_pylist()
    assert len(begun(trace, "faults")) == sum(len(set(targets or ["run"])) for targets in faults)
    log = pq.read_table(run.table_path("metadata_log"))
    nodes = Counter(log.filter(pc.invert(log["snapshot"]))["node"].to_pylist())
    assert len(begun(trace, "records")) == max(nodes.values())


def test_a_held_frame_is_a_slice_that_flows_to_its_receiver(
    run: RunDirectory, trace: Trace
) -> None:
    (held,) = begun(trace, "held")
    assert held.track_event.name == "AlterPartition"
    assert tracks(trace)[held.track_event.track_uuid] == ("broker-1", "held")
    (flow,) = held.track_event.flow_ids
    arrivals = [p for p in begun(trace, "arrivals") if flow in p.track_event.terminating_flow_ids]
    (arrival,) = arrivals
    assert tracks(trace)[arrival.track_event.track_uuid] == ("controller-1", "arrivals")
    wire = pq.read_table(run.table_path("wire"))
    row = wire.filter(pc.equal(wire["action"], "released")).to_pylist()[0]
    assert (held.timestamp, arrival.timestamp) == (row["time_ns"], row["forwarded_ns"])


def test_slices_of_a_track_never_overlap_and_all_end(trace: Trace) -> None:
    open_until: dict[int, int] = {}
    depth: Counter[int] = Counter()
    for packet in trace.packet:
        kind, track = packet.track_event.type, packet.track_event.track_uuid
        if kind == TrackEvent.TYPE_SLICE_BEGIN:
            assert depth[track] == 0
            assert packet.timestamp >= open_until.get(track, 0)
            depth[track] += 1
        elif kind == TrackEvent.TYPE_SLICE_END:
            depth[track] -= 1
            open_until[track] = packet.timestamp
    assert not +depth


def test_flows_begin_once_and_end_once(trace: Trace) -> None:
    begins = Counter(one for p in trace.packet for one in p.track_event.flow_ids)
    ends = Counter(one for p in trace.packet for one in p.track_event.terminating_flow_ids)
    assert begins == ends
    assert set(begins.values()) == {1}


def test_a_file_that_cannot_be_is_refused_in_one_line(
    run: RunDirectory, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, named in (
        ((str(run.root), "--perfetto", str(tmp_path / "none" / "x")), "none/x"),
        ((str(run.root), "--perfetto", str(tmp_path)), str(tmp_path)),
        ((str(tmp_path / "norun"), "--perfetto", str(tmp_path / "x")), "norun"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["report", *words])
        said = capsys.readouterr().err
        assert ended.value.code == 254
        assert named in said
        assert len(said.strip().splitlines()) == 1
    assert not (tmp_path / "x").exists()
