"""Large keys, judged in segments by many tasks: the driver's decisions between the tasks.

First every piece is surveyed, and its file verified; then the key is cut (`data_plane.large.plan`)
and every segment judged (`data_plane.large.segment`). In nearly every history that is all. Where
values are shared between segments, these are judged again without them, and the shared values
separately. Where a proof tells of a step between segments, their positions are asked for.

The driver gets summaries alone: a few rows a piece and process, a count a block of offsets, some
thousand ranges a segment, and proofs. A task holds one segment and one piece of its key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES, anomalies_of
from fencepost.checkers.data_plane.answers import KeyAnswer, added_up, judged_rows
from fencepost.checkers.data_plane.findings import unknown_rows
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_summary import Spans
from fencepost.checkers.data_plane.large.jobs import Jobs
from fencepost.checkers.data_plane.large.plan import (
    disorder_of,
    happened_among,
    planned,
    shared_values,
)
from fencepost.checkers.data_plane.large.survey import Grain, PieceSurvey
from fencepost.checkers.data_plane.large.tasks import (
    JudgeSegment,
    JudgeSegmentAgain,
    JudgeShared,
    KeyPiece,
    Positions,
    ReturnedValues,
    SegmentAnswer,
    SegmentSource,
    SurveyPiece,
)
from fencepost.checkers.data_plane.poll_order import is_unmeasured, measured
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import joined
from fencepost.checkers.runner.tasks import TaskResult as TaskAnswer
from fencepost.checkers.setting import Setting

Result = TypeVar("Result")


@dataclass(slots=True, kw_only=True)
class LargeKey:
    """A key on its way to its answers."""

    name: str
    pieces: tuple[KeyPiece, ...]
    """The pieces in the order of its rows."""
    failure: str = ""
    """The reason why it cannot be judged; empty until a task reports one."""
    surveys: Sequence[PieceSurvey] = ()
    returned: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """The values of undecided sends that ok reads returned."""
    sources: tuple[SegmentSource, ...] = ()
    answers: list[SegmentAnswer] = field(default_factory=list)
    """The answers of its segments, in order."""
    of_shared: list[SegmentAnswer] = field(default_factory=list)


def surveys_wanted(keys: Sequence[LargeKey], setting: Setting, grain: Grain) -> list[SurveyPiece]:
    """Return the tasks that survey these keys, key by key and piece by piece."""
    return [
        SurveyPiece(piece=piece, setting=setting, grain=grain)
        for key in keys
        for piece in key.pieces
    ]


def large_key_rows(
    keys: Sequence[LargeKey],
    surveys: Sequence[TaskAnswer[SurveyPiece, PieceSurvey]],
    *,
    setting: Setting,
    checks: Mapping[str, KeyCheck],
    jobs: Jobs,
    grain: Grain,
) -> Iterator[dict[str, Any]]:
    """Yield rows of FINDINGS of these keys, by key.

    `surveys`: what the tasks of `surveys_wanted` answered.
    """
    for key, mine in zip(keys, _dealt(keys, surveys), strict=True):
        key.surveys = _kept(key, mine)
        if not key.failure and (disorder := disorder_of(key.surveys)):
            key.failure = f"{key.name}: {disorder}"
    _decide(_sound(keys), jobs)
    for key in _sound(keys):
        key.sources = _sources(key, setting, grain)
    _judge(_sound(keys), checks, jobs)
    _judge_shared(_sound(keys), setting, checks, jobs)
    for key in keys:
        for row in _rows_of(key, checks, jobs):
            yield row | {"path": key.pieces[0].file.path, "key": key.name}


def _rows_of(key: LargeKey, checks: Mapping[str, KeyCheck], jobs: Jobs) -> Iterable[dict[str, Any]]:
    answers = {} if key.failure else _answers(key, checks, jobs)
    if key.failure:
        return unknown_rows(key.name, checks, key.failure)
    return judged_rows(key.name, checks, answers)


def _decide(keys: Sequence[LargeKey], jobs: Jobs) -> None:
    """Find out which values of undecided sends were returned; there are hardly ever any."""
    unsure = [key for key in keys if any(len(piece.undecided) for piece in key.surveys)]
    tasks = [
        ReturnedValues(piece=piece, values=values)
        for key in unsure
        for values in [np.unique(joined([one.undecided for one in key.surveys]).value)]
        for piece in key.pieces
    ]
    for key, mine in zip(unsure, _dealt(unsure, jobs.answers(tasks)), strict=True):
        key.returned = np.unique(np.concatenate([key.returned, *_kept(key, mine)]))


def _sources(key: LargeKey, setting: Setting, grain: Grain) -> tuple[SegmentSource, ...]:
    undecided = joined([piece.undecided for piece in key.surveys])
    plan = planned(
        key.surveys,
        happened=happened_among(undecided, returned=key.returned),
        assigned=setting.consume == "assign",
        grain=grain,
    )
    return tuple(
        SegmentSource(
            key=key.name,
            setting=setting,
            around=plan.around,
            segment=segment,
            pieces=tuple(key.pieces[piece] for piece in segment.pieces),
            carried=tuple(plan.carried[piece] for piece in segment.pieces),
        )
        for segment in plan.segments
    )


def _judge(keys: Sequence[LargeKey], checks: Mapping[str, KeyCheck], jobs: Jobs) -> None:
    tasks = [JudgeSegment(source=source, checks=checks) for key in keys for source in key.sources]
    answers = iter(jobs.answers(tasks))
    for key in keys:
        key.answers = _kept(key, [next(answers) for _ in key.sources])


def _judge_shared(
    keys: Sequence[LargeKey], setting: Setting, checks: Mapping[str, KeyCheck], jobs: Jobs
) -> None:
    """Judge shared values separately, and their segments without them."""
    tasks: list[JudgeSegmentAgain] = []
    places: list[tuple[LargeKey, int]] = []
    key_of_bucket: list[int] = []
    for number, key in enumerate(keys):
        shared = shared_values([answer.ranges for answer in key.answers if answer.ranges])
        concerned = [place for place, one in enumerate(key.answers) if _meets(one.ranges, shared)]
        first = len(key_of_bucket)
        # There are as many buckets as segments, so that hardly one holds more than a segment.
        key_of_bucket += [number] * len(concerned)
        for place in concerned:
            places.append((key, place))
            tasks.append(
                JudgeSegmentAgain(
                    source=key.sources[place],
                    checks=checks,
                    shared=shared,
                    first_bucket=first,
                    buckets=len(concerned),
                )
            )
    if not tasks:
        return
    judge = JudgeShared(
        keys=tuple(key.name for key in keys),
        setting=setting,
        around=tuple(key.sources[0].around for key in keys),
        key_of_bucket=tuple(key_of_bucket),
        checks=checks,
    )
    answers, of_buckets = jobs.exchanged(tasks, judge)
    for (key, place), answer in zip(places, answers, strict=True):
        for again in _kept(key, [answer]):
            key.answers[place] = again
    for bucket, answer in sorted(of_buckets.items()):
        key = keys[key_of_bucket[bucket]]
        key.of_shared += _kept(key, [answer])


def _meets(ranges: Spans | None, shared: Spans) -> bool:
    if ranges is None or not len(ranges.start) or not len(shared.start):
        return False
    place = np.searchsorted(ranges.end, shared.start)
    inside = np.append(ranges.start, np.iinfo(np.int64).max)[place] <= shared.end
    return bool(np.any(inside & (place < len(ranges.start))))


def _answers(key: LargeKey, checks: Mapping[str, KeyCheck], jobs: Jobs) -> dict[str, KeyAnswer]:
    """Return the answers on the whole key; may find that it cannot be judged after all."""
    added = {
        name: added_up(
            check,
            key.name,
            (
                answer.answers[name]
                for answer in (*key.answers, *key.of_shared)
                if name in answer.answers
            ),
        )
        for name, check in {**KEY_ASSUMPTIONS, **checks}.items()
    }
    return {name: _measured(key, answer, jobs) for name, answer in added.items()}


def _measured(key: LargeKey, answer: KeyAnswer, jobs: Jobs) -> KeyAnswer:
    """Return the answer, with the deltas of steps between segments in its proofs."""
    if answer.found is None:
        return answer
    found = list(anomalies_of(answer.found.table))
    far = [one.proof for one in found if is_unmeasured(one.proof)]
    if not far:
        return answer
    offsets = np.unique([offset for proof in far for offset in proof.offsets])
    position = dict(zip(offsets.tolist(), _positions(key, offsets, jobs), strict=True))
    rows = [replace(one, proof=_with_delta(one.proof, position)).row() for one in found]
    table = pa.Table.from_pylist(rows, schema=ANOMALIES)
    return replace(answer, found=replace(answer.found, table=table))


def _with_delta(proof: Proof, position: Mapping[int, int]) -> Proof:
    if not is_unmeasured(proof):
        return proof
    before, after = proof.offsets
    return measured(proof, position[after] - position[before])


def _positions(key: LargeKey, offsets: NDArray[np.int64], jobs: Jobs) -> list[int]:
    """Return the positions of these offsets in the whole key."""
    start = np.array([source.segment.start for source in key.sources])
    segment = np.searchsorted(start, offsets, side="right") - 1
    asked = np.unique(segment).tolist()
    tasks = [Positions(source=key.sources[one], offsets=offsets[segment == one]) for one in asked]
    before = list(accumulate((answer.held for answer in key.answers), initial=0))
    parts = _kept(key, jobs.answers(tasks))
    if key.failure:
        return [0] * len(offsets)
    whole = [part + before[one] for part, one in zip(parts, asked, strict=True)]
    return [int(position) for position in np.concatenate(whole)]


def _sound(keys: Sequence[LargeKey]) -> list[LargeKey]:
    return [key for key in keys if not key.failure]


def _dealt(keys: Sequence[LargeKey], answers: Sequence[Result]) -> list[list[Result]]:
    """Return the answers of tasks that were one a piece, by key."""
    rest = iter(answers)
    return [[next(rest) for _ in key.pieces] for key in keys]


def _kept(key: LargeKey, answers: Sequence[TaskAnswer[Any, Result]]) -> list[Result]:
    """Return the results of the tasks that did not fail; the key keeps the first failure."""
    for answer in answers:
        if answer.failure and not key.failure:
            key.failure = f"{key.name}: {answer.failure}"
    return [answer.content for answer in answers if answer.content is not None]
