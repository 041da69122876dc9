"""The check that operations on a versioned register are linearizable: no search, one schedule.

The register has versions 0, 1, …; t_k is the moment at which version k appears, and it holds until
t_{k+1}. Every operation is a condition on these moments (intervals are closed):

- a read of version k in [call, return]: t_k ≤ return and t_{k+1} ≥ call;
- a swap (compare-and-set) that made version k: call ≤ t_k ≤ return;
- a write without a caller: its version did not appear before `call`;
- a swap that expected version e and was refused: version e did not hold at some moment in between,
  so t_e ≥ call or t_{e+1} ≤ return;
- a swap that expected e and crashed may have made e + 1 and nothing else. Where that version must
  have a caller (`called`) and no other swap made it, t_{e+1} is at or after the earliest call of
  such a crash. Past the last version it may have made one that no client saw;
- the order of the versions: t_k ≤ t_{k+1}.

Every condition but a refusal is a lower or an upper bound of one moment. A refusal reads: if
t_{e+1} is above its return, then t_e is at or above its call. Such a rule only ever raises lower
bounds, and raising one never makes another condition on a lower bound harder to state. So there is
a least schedule: begin with the running maximum of the lower bounds, and raise t_e wherever a rule
says so, until none does. Every possible schedule lies at or above it, moment by moment. Hence: the
operations are linearizable exactly if the least schedule keeps every upper bound.

Price: O(n) for n operations without refusals; each refusal raises once, and its raise goes up only
as far as it is the maximum. (It is plainer than carrying sets of feasible intervals, and as exact.)

Source: linearizability, Herlihy and Wing 1990; the reduction to one moment a version is ours, and
tested against trying all schedules.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

NEVER: Final = 1 << 62
"""The return of an operation whose end was never seen."""
ALWAYS: Final = -NEVER
"""The call of an operation that may have taken place at any time before its return."""


class OperationKind(Enum):
    """The effect of an operation."""

    READ = "read"
    """`version` is the one it returned."""
    SWAP = "swap"
    """`version` is the one it made."""
    WRITE = "write"
    """`version` is the one it made, at its call or later; no caller waited for it."""
    REFUSED = "refused"
    """`version` is the one it expected, which did not hold."""
    CRASHED = "crashed"
    """`version` is the one it expected; it may have made the next one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterOperation:
    """One operation. Writes and crashed swaps have no return."""

    kind: OperationKind
    version: int
    call: int
    end: int = NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two operations that no order of all of them explains, by their places in the sequence."""

    early: int
    """It says that `early_version` did not appear before …"""
    early_version: int
    bound: int
    """… this moment."""
    late: int
    """It says that `late_version`, the same or a later one, had appeared earlier."""
    late_version: int


@dataclass(frozen=True, slots=True)
class _Bound:
    time: int
    operation: int


def contradiction(
    operations: Sequence[RegisterOperation], *, version_count: int, called: Collection[int] = ()
) -> Contradiction | None:
    """Return the first contradiction, or None if the operations are linearizable.

    Versions are 0 to `version_count` - 1; `called` are those that some swap must have made.
    """
    lower, upper = _bounds(operations, version_count)
    _bind_crashed(operations, lower, version_count=version_count, called=called)
    schedule = _least(operations, lower, version_count)
    for version in range(version_count):
        if schedule[version].time > upper[version].time:
            early = schedule[version]
            first = min(k for k in range(version + 1) if schedule[k] == early)
            return Contradiction(
                early=early.operation,
                early_version=first,
                bound=early.time,
                late=upper[version].operation,
                late_version=version,
            )
    return None


def _bounds(
    operations: Sequence[RegisterOperation], version_count: int
) -> tuple[list[_Bound], list[_Bound]]:
    """Return the tightest bounds of each moment, with one more for a version unseen."""
    lower = [_Bound(ALWAYS, -1)] * (version_count + 1)
    upper = [_Bound(NEVER, -1)] * (version_count + 1)
    for place, operation in enumerate(operations):
        version = operation.version
        if operation.kind in (OperationKind.REFUSED, OperationKind.CRASHED):
            continue
        assert 0 <= version < version_count, (version, version_count)
        if operation.end < upper[version].time:
            upper[version] = _Bound(operation.end, place)
        bounded = version + (operation.kind is OperationKind.READ)
        if operation.call > lower[bounded].time:
            lower[bounded] = _Bound(operation.call, place)
    return lower, upper


def _bind_crashed(
    operations: Sequence[RegisterOperation],
    lower: list[_Bound],
    *,
    version_count: int,
    called: Collection[int],
) -> None:
    """Lower bounds of versions that only a crashed swap can have made."""
    made = {one.version for one in operations if one.kind is OperationKind.SWAP}
    earliest: dict[int, _Bound] = {}
    for place, operation in enumerate(operations):
        if operation.kind is OperationKind.CRASHED:
            bound = earliest.get(operation.version + 1)
            if bound is None or operation.call < bound.time:
                earliest[operation.version + 1] = _Bound(operation.call, place)
    for version, bound in earliest.items():
        if version in called and version not in made and bound.time > lower[version].time:
            lower[version] = bound
    # Past the last version nothing was seen: what a crash did not make is not there at all.
    unseen = earliest.get(version_count, _Bound(NEVER, -1))
    if unseen.time > lower[version_count].time:
        lower[version_count] = unseen


def _least(
    operations: Sequence[RegisterOperation], lower: Sequence[_Bound], version_count: int
) -> list[_Bound]:
    """Return the least schedule, each moment with the operation that it waits for."""
    schedule = list(lower)
    for version in range(1, version_count + 1):
        if schedule[version - 1].time > schedule[version].time:
            schedule[version] = schedule[version - 1]
    refused: dict[int, list[int]] = {}
    for place, operation in enumerate(operations):
        # A version that never was did not hold, and version -1 neither.
        if operation.kind is OperationKind.REFUSED and 0 <= operation.version < version_count:
            refused.setdefault(operation.version, []).append(place)
    waiting = sorted(refused)
    while waiting:
        version = waiting.pop()
        raised = _raise(version, refused[version], operations, schedule)
        waiting += [one for one in range(version - 1, raised) if one in refused]
    return schedule


def _raise(
    version: int,
    places: Sequence[int],
    operations: Sequence[RegisterOperation],
    schedule: list[_Bound],
) -> int:
    """Raise moments as these refusals say; the first version that is not raised, or -1."""
    end = -1
    for place in places:
        call, returned = operations[place].call, operations[place].end
        if schedule[version + 1].time <= returned or schedule[version].time >= call:
            continue
        end = version
        while end < len(schedule) and schedule[end].time < call:
            schedule[end] = _Bound(call, place)
            end += 1
    return end
