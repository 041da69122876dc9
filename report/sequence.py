"""The scene of a sequence picture: which nodes, and what happened between them, in which window.

Three witnesses stand side by side, each in its own column, in one order of time: the frames on the
wire, the decisions in the metadata log, and the steps of the play. The picture shows a whole run if
there is room for it. Else it shows what lies around the frames that were held, dropped or the like;
else what lies around the faults. It says in words what it leaves out and what was not recorded, for
silence must not pass for quiet.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.checkers.runner.tables import SealedFile, source_in
from fencepost.checkers.sources import Source, source_of
from fencepost.history.cluster_schema import METADATA_LOG
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.report.arrows import ARROWS_MAX, Arrow, arrows_of, chosen_arrows
from fencepost.report.faults import FaultSpan
from fencepost.report.frames import NO_FRAMES, FrameCounts, ShownFrame, frame_counts, frames_between
from fencepost.report.metadata_notes import DecisionNote, notes_of, topic_names
from fencepost.report.notation import counted, integer
from fencepost.report.own_load import is_of_load, topics_of, without_load
from fencepost.report.performed import PerformedStep, performed_steps
from fencepost.report.reading import Attempts, Reading

RULE_KINDS: Final = frozenset(
    (
        *("hold", "drop", "delay", "duplicate", "reorder", "answer", "lower_version"),
        *("stall", "cut", "watch"),
    )
)
"""The faults that are rules of the wire: the arrows show what they did."""

_CLIENTS: Final = "clients"
_NO_LOG: Final = source_of(METADATA_LOG.empty_table())
_MARGIN_NS: Final = 5_000_000_000
_NOTES_MAX: Final = 80
_STEPS_MAX: Final = 80
_APIS_NAMED: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A closed span of the run."""

    from_ns: int
    to_ns: int

    def holds(self, time_ns: int) -> bool:
        """Return whether the moment is in it."""
        return self.from_ns <= time_ns <= self.to_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class SequenceScene:
    """All that is drawn, and the words around it."""

    window: Window
    whole: bool
    """True if that is the whole run."""
    nodes: tuple[str, ...]
    """The nodes, from left to right."""
    arrows: tuple[Arrow, ...]
    notes: tuple[DecisionNote, ...]
    steps: tuple[PerformedStep, ...]
    spans: tuple[FaultSpan, ...]
    """The faults of nodes that were open in the window."""
    remarks: tuple[str, ...]
    """The parts that are not in the picture, and the reasons."""

    @property
    def frames(self) -> frozenset[int]:
        """The frames that are in the picture, by number."""
        return frozenset(number for arrow in self.arrows for number in arrow.frames)

    @property
    def metadata_offsets(self) -> frozenset[int]:
        """The records of the metadata log that are in the picture."""
        return frozenset(note.metadata_offset for note in self.notes)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to draw."""
        return not (self.arrows or self.notes)


def scene_of(
    run: RunDirectory,
    reading: Reading,
    *,
    window: Window | None = None,
    proven: Collection[int] = (),
) -> SequenceScene:
    """Return the scene to draw of a run in any state; parts that cannot be read become remarks.

    `proven`: the frames that the proofs on the page name.
    """
    attempts = Attempts()
    manifest = reading.manifest
    log = attempts.read(lambda: _metadata_log(run), _NO_LOG)
    names: Mapping[str, str] = attempts.read(lambda: topic_names(log), {})
    tape = _tape(run, reading, attempts, window=window, topics=names, proven=proven)
    steps: tuple[PerformedStep, ...] = ()
    steps = attempts.read(lambda: performed_steps(run.play_path, reading.spans), steps)
    shown = tape.window
    noted = _Noted(notes=(), count=0, ties=False)
    if manifest is not None:
        own = topics_of(manifest)
        noted = attempts.read(lambda: _noted(notes_of(log, manifest), shown, own), noted)
    stepped = [step for step in steps if shown.holds(step.time_ns)]
    spans = tuple(span for span in reading.spans if _is_drawn(span, shown, reading.end_ns))
    return SequenceScene(
        window=shown,
        whole=shown == _whole(reading),
        nodes=_nodes(manifest, tape.arrows, noted.notes, spans),
        arrows=tape.arrows,
        notes=noted.notes,
        steps=tuple(stepped[:_STEPS_MAX]),
        spans=spans,
        remarks=(
            *_unrecorded(manifest, frame_count=tape.frame_count, noted=noted.ties),
            *_left_out_of(tape.folded, tape.load, tape.left_out),
            *_too_many(noted.count - _NOTES_MAX, "decision of the metadata log", "decisions"),
            *_too_many(len(stepped) - _STEPS_MAX, "step of the play", "steps of the play"),
            *attempts.troubles,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Noted:
    """The decisions in the metadata log."""

    notes: tuple[DecisionNote, ...]
    """The first `_NOTES_MAX` of the window."""
    count: int
    """The number in the window."""
    ties: bool
    """True if the log ties any decision to a time of the run."""


def _noted(notes: Iterator[DecisionNote], shown: Window, own: Collection[str]) -> _Noted:
    kept, count, ties = [], 0, False
    for note in notes:
        ties = True
        if shown.holds(note.time_ns) and not is_of_load(note, topics=own):
            count += 1
            kept += [note] if count <= _NOTES_MAX else []
    return _Noted(notes=tuple(kept), count=count, ties=ties)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tape:
    """The part of the tape that is drawn, and counts of the rest."""

    window: Window
    frame_count: int
    """The number of frames on the whole tape."""
    arrows: tuple[Arrow, ...]
    folded: Counter[str]
    """The counts of frames, by API, that decide nothing."""
    load: Counter[str]
    """The counts of frames, by API, about topics that the clients make beside the run's."""
    left_out: Counter[str]
    """The counts of arrows, by API, that there was no room for."""


def _tape(
    run: RunDirectory,
    reading: Reading,
    attempts: Attempts,
    *,
    window: Window | None,
    topics: Mapping[str, str],
    proven: Collection[int],
) -> _Tape:
    files: tuple[Path, ...] = ()
    files = attempts.read(lambda: _files(run, "wire"), files)
    counts = attempts.read(lambda: frame_counts(files, disturbed_max=ARROWS_MAX // 2), NO_FRAMES)
    shown = window or _window(reading, counts)
    nothing: tuple[tuple[ShownFrame, ...], Counter[str]] = ((), Counter())
    frames, folded = attempts.read(
        lambda: frames_between(
            files, from_ns=shown.from_ns, to_ns=shown.to_ns, proven=proven, topics=topics
        ),
        nothing,
    )
    frames, load = without_load(frames, topics=topics_of(reading.manifest), proven=proven)
    arrows, left_out = chosen_arrows(arrows_of(frames, proven=proven))
    return _Tape(
        window=shown,
        frame_count=counts.frame_count,
        arrows=arrows,
        folded=folded,
        load=load,
        left_out=left_out,
    )


def _is_drawn(span: FaultSpan, shown: Window, run_end_ns: int) -> bool:
    """Return whether it is a fault of nodes that was open in the window."""
    if span.kind in RULE_KINDS:
        return False
    return span.begin_ns <= shown.to_ns and span.until_ns(run_end_ns) >= shown.from_ns


def _files(run: RunDirectory, name: str) -> tuple[Path, ...]:
    """Return the file of the table; no file if the run is not sealed or is older than the table."""
    path = run.table_path(name)
    return (path,) if path.is_file() else ()


def _metadata_log(run: RunDirectory) -> Source:
    found = _files(run, "metadata_log")
    if not found:
        return _NO_LOG
    return source_in(SealedFile(path=str(found[0]), digest=""), "metadata_log")


def _whole(reading: Reading) -> Window:
    return Window(from_ns=0, to_ns=reading.end_ns)


def _window(reading: Reading, counts: FrameCounts) -> Window:
    whole = _whole(reading)
    # Exchanges are two frames and mostly one arrow.
    if counts.deciding_count + counts.disturbed_count <= 2 * ARROWS_MAX:
        return whole
    if counts.disturbed_from_ns is not None:
        begin, end = counts.disturbed_from_ns, counts.disturbed_until_ns
    elif reading.spans:
        begin = min(span.begin_ns for span in reading.spans)
        end = max(span.until_ns(reading.end_ns) for span in reading.spans)
    else:
        return whole
    return Window(from_ns=max(0, begin - _MARGIN_NS), to_ns=min(reading.end_ns, end + _MARGIN_NS))


def _nodes(
    manifest: Manifest | None,
    arrows: Sequence[Arrow],
    notes: Sequence[DecisionNote],
    spans: Sequence[FaultSpan],
) -> tuple[str, ...]:
    """Return the nodes of the cluster, controllers first; the clients, if they said anything."""
    known = dict.fromkeys(manifest.node_ids if manifest else ())
    spoke = {node for arrow in arrows for node in (arrow.sender, arrow.receiver)}
    hurt = {target for span in spans for target in span.targets}
    noting = {note.by for note in notes if note.by}
    # A name that is no node of the cluster, in a damaged table, still gets its line.
    others = sorted((spoke | hurt | noting) - known.keys() - {_CLIENTS}, key=_natural)
    clients = [_CLIENTS] if _CLIENTS in spoke else []
    return (*known, *others, *clients)


def _natural(node: str) -> tuple[int, str, int]:
    role, _, number = node.rpartition("-")
    return (0 if role == "controller" else 1, role, int(number) if number.isdecimal() else 0)


def _unrecorded(manifest: Manifest | None, *, frame_count: int, noted: bool) -> Iterator[str]:
    """Yield a sentence for each witness that is absent."""
    recorded = manifest.recorded if manifest else ()
    if not frame_count:
        yield (
            "The wire was recorded, and nothing went over it."
            if "wire" in recorded
            else "This run has no tape of what its nodes said to each other."
        )
    if not noted:
        yield (
            "The metadata log that was recorded ties no decision to a time of this run."
            if "metadata_log" in recorded
            else "This run did not record the metadata log."
        )


def _left_out_of(folded: Counter[str], load: Counter[str], left_out: Counter[str]) -> Iterator[str]:
    """Yield by API the frames that were folded away and the arrows that had no room."""
    if folded:
        yield f"Not drawn, for nothing was done to them: {_by_api(folded)}."
    if load:
        yield f"Not drawn, for they are about the topics of a load on metadata: {_by_api(load)}."
    if left_out:
        yield f"There was no room for {_by_api(left_out)}; a shorter window shows them."


def _by_api(counts: Counter[str]) -> str:
    named = [f"{integer(count)} {api}" for api, count in counts.most_common(_APIS_NAMED)]
    rest = sum(counts.values()) - sum(count for _, count in counts.most_common(_APIS_NAMED))
    return ", ".join([*named, *([f"{integer(rest)} others"] if rest else [])])


def _too_many(count: int, noun: str, plural: str) -> Iterator[str]:
    """Yield a sentence that `count` more came later, if any did."""
    if count > 0:
        yield f"{counted(count, noun, plural=plural)} more came later in this window."
