"""A run as a Perfetto trace, which https://ui.perfetto.dev and its trace processor read.

Each node and each client is a track. Below it, operations are slices from call to return, frames
that were held and faults likewise; all other frames are instants. A frame flows from its sender to
an instant of its receiver, if it arrived. Records of the metadata log, findings and steps of the
play are instants on tracks of their own. Slices that overlap lie on tracks of one name, which
Perfetto draws as one.

The messages are those of the official descriptors, from PyPI's `perfetto`. Packets are written in
the order of the tables; readers of traces sort them.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TracePacket, TrackEvent
from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.report.serve.timeline.block import KINDS, Block
from fencepost.report.serve.timeline.opened import OpenRun

_SEQUENCE: Final = 1
_REQUEST, _RESPONSE, _OPERATION, _RECORD = range(len(KINDS))


@dataclass(slots=True, kw_only=True)
class TraceCounts:
    """The events of a trace."""

    slices: int = 0
    instants: int = 0
    flows: int = 0


def write_trace(run: RunDirectory, path: Path) -> TraceCounts:
    """Write the trace of a sealed run to `path`, whole or not at all; return what it has.

    Raises HarnessError if the run cannot be read or the file cannot be written.
    """
    open_run = OpenRun(run)
    draft = path.parent / f".{path.name}.{os.getpid()}"
    try:
        with draft.open("wb") as file:
            trace = _Trace(StreamingTraceProtoBuilder(file))
            _write(trace, open_run)
        draft.replace(path)
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}") from error
    finally:
        draft.unlink(missing_ok=True)
    return trace.counts


def _write(trace: "_Trace", run: OpenRun) -> None:
    reader = run.reader
    last_frame = -1
    for block in reader.blocks(0, reader.end_ns):
        words = [
            [lane.name for lane in reader.lane_list()],
            reader.whats.words,
            reader.keys.words,
            reader.fates.words,
            reader.errors.words,
        ]
        held = reader.is_odd(block) & (block.until_ns > block.time_ns)
        for event, is_held in zip(_events(block, words), held.tolist(), strict=True):
            if event.kind == _OPERATION:
                trace.slice(event, "operations")
            elif event.kind == _RECORD:
                trace.instant("metadata log", "records", event.time_ns, event.name, event.notes)
            elif event.row != last_frame:
                # A frame of several partitions has a row for each of them.
                last_frame = event.row
                trace.frame(event, is_held=is_held)
    for span in run.spans:
        for target in dict.fromkeys(span.targets or ("run",)):
            fault = _Event(
                kind=_OPERATION,
                lane=target,
                peer=target,
                time_ns=span.begin_ns,
                until_ns=span.until_ns(reader.end_ns),
                name=span.kind,
                notes={"evidence": span.evidence, "healed": span.heal_evidence},
                row=span.index,
            )
            trace.slice(fault, "faults")
    for pin in run.pins()[0]:
        trace.instant("verdict and play", pin.kind, pin.time_ns, pin.text, {})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    kind: int
    lane: str
    peer: str
    time_ns: int
    until_ns: int
    """-1: it has no end."""
    name: str
    notes: dict[str, Any]
    row: int


def _events(block: Block, words: Iterable[Iterable[str]]) -> Iterator[_Event]:
    lanes, whats, keys, fates, errors = map(list, words)
    columns = (
        *(block.kind, block.lane, block.peer, block.time_ns, block.until_ns, block.what),
        *(block.key, block.fate, block.error, block.leader_epoch, block.row),
    )
    for kind, lane, peer, time_ns, until_ns, what, key, fate, error, epoch, row in zip(
        *(column.tolist() for column in columns), strict=True
    ):
        yield _Event(
            kind=kind,
            lane=lanes[lane],
            peer=lanes[peer],
            time_ns=time_ns,
            until_ns=until_ns,
            name=whats[what] if kind != _RESPONSE else f"{whats[what]} response",
            notes={
                "key": keys[key],
                "fate": fates[fate],
                "error": errors[error],
                "leader_epoch": epoch if epoch >= 0 else "",
                ("frame", "frame", "operation", "metadata_offset")[kind]: row,
            },
            row=row,
        )


@dataclass(slots=True)
class _Trace:
    builder: StreamingTraceProtoBuilder
    counts: TraceCounts = field(default_factory=TraceCounts)
    _tracks: dict[tuple[str, ...], int] = field(default_factory=dict)
    _free_ns: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    """Of each kind of slice of a lane, when each of its tracks is free again."""

    def frame(self, event: _Event, *, is_held: bool) -> None:
        arrived = event.until_ns >= event.time_ns
        flow = event.row + 1 if arrived and event.peer != event.lane else None
        if is_held:
            self.slice(event, "held", flow=flow)
        else:
            self.instant(event.lane, "frames", event.time_ns, event.name, event.notes, begins=flow)
        if flow is not None:
            name = f"{event.name} arrives"
            self.instant(event.peer, "arrivals", event.until_ns, name, {}, ends=flow)
            self.counts.flows += 1

    def slice(self, event: _Event, kind: str, *, flow: int | None = None) -> None:
        rows = self._free_ns.setdefault((event.lane, kind), [])
        row = next((at for at, free in enumerate(rows) if free <= event.time_ns), len(rows))
        # An operation without a return may have taken effect at any later time: it is marked so,
        # and drawn as a moment.
        until_ns = max(event.time_ns, event.until_ns)
        rows[row : row + 1] = [until_ns]
        track = self._track(event.lane, kind, str(row))
        packet = self._packet(event.time_ns, track, TrackEvent.TYPE_SLICE_BEGIN)
        packet.track_event.name = event.name
        _annotate(packet, event.notes if event.until_ns >= 0 else {**event.notes, "end": "none"})
        if flow is not None:
            packet.track_event.flow_ids.append(flow)
        self.builder.write_packet(packet)
        self.builder.write_packet(self._packet(until_ns, track, TrackEvent.TYPE_SLICE_END))
        self.counts.slices += 1

    def instant(
        self,
        lane: str,
        kind: str,
        time_ns: int,
        name: str,
        notes: dict[str, Any],
        *,
        begins: int | None = None,
        ends: int | None = None,
    ) -> None:
        packet = self._packet(time_ns, self._track(lane, kind), TrackEvent.TYPE_INSTANT)
        packet.track_event.name = name
        _annotate(packet, notes)
        if begins is not None:
            packet.track_event.flow_ids.append(begins)
        if ends is not None:
            packet.track_event.terminating_flow_ids.append(ends)
        self.builder.write_packet(packet)
        self.counts.instants += 1

    def _packet(self, time_ns: int, track: int, kind: Any) -> TracePacket:
        packet = self.builder.create_packet()
        packet.timestamp = max(0, time_ns)
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_event.type = kind
        packet.track_event.track_uuid = track
        return packet

    def _track(self, *names: str) -> int:
        """Return the track of a lane, of a kind of event below it, and of a row of slices."""
        known = self._tracks.get(names)
        if known is not None:
            return known
        parent = self._track(names[0]) if len(names) > 1 else None
        uuid = self._tracks[names] = len(self._tracks) + 1
        packet = self.builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        packet.track_descriptor.uuid = uuid
        packet.track_descriptor.name = names[1] if parent else names[0]
        if parent is not None:
            packet.track_descriptor.parent_uuid = parent
        self.builder.write_packet(packet)
        return uuid


def _annotate(packet: TracePacket, notes: dict[str, Any]) -> None:
    for name, value in notes.items():
        if value == "":
            continue
        note = packet.track_event.debug_annotations.add()
        note.name = name
        if isinstance(value, int):
            note.int_value = value
        else:
            note.string_value = value
