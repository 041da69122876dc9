"""The clients' own load on metadata, which a sequence picture folds away.

A workload makes and unmakes topics of its own beside those that the run is about: a hundred times a
minute, and nothing that is shown of it tells what became of a record. A frame or a decision about
such topics alone is counted instead of drawn, unless something was done to it or a proof names it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from fencepost.history.manifest import Manifest
from fencepost.report.frames import ShownFrame
from fencepost.report.metadata_notes import DecisionNote

_INTERNAL = "__"


def topics_of(manifest: Manifest | None) -> frozenset[str]:
    """Return the topics that a run is about; none, where that is not known."""
    keys = manifest.keys if manifest is not None else ()
    return frozenset(key.rpartition("-")[0] for key in keys)


def without_load(
    frames: Sequence[ShownFrame], *, topics: Collection[str], proven: Collection[int]
) -> tuple[tuple[ShownFrame, ...], Counter[str]]:
    """Return the frames that are not of the load on metadata alone, and counts of it by API.

    `topics`: those that the run is about; none: it is not known, and nothing is folded.
    """
    told = {frame.exchange for frame in frames if frame.touched or frame.number in proven}
    folded = {
        frame.exchange
        for frame in frames
        if topics and frame.exchange not in told and _is_foreign(frame, topics)
    }
    kept = tuple(frame for frame in frames if frame.exchange not in folded)
    return kept, Counter(frame.api for frame in frames if frame.exchange in folded)


def is_of_load(note: DecisionNote, *, topics: Collection[str]) -> bool:
    """Return whether a decision is about partitions of such topics alone."""
    named = {partition.rpartition("-")[0] for partition in note.about}
    return bool(topics and named) and _none_of(named, topics)


def _is_foreign(frame: ShownFrame, topics: Collection[str]) -> bool:
    """Return whether all that the frame names is known, and is of other topics than the run's."""
    named = [item.get("topic") for item in frame.items]
    if None in named or len(named) < frame.item_count:
        return False
    return _none_of([str(name) for name in named], topics)


def _none_of(named: Iterable[str], topics: Collection[str]) -> bool:
    return all(name not in topics and not name.startswith(_INTERNAL) for name in named)
