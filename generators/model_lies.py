"""Lies to plant among made-up operations: for each model the smallest stories that cannot be.

A story is told to an object at a moment at which nothing else goes on: every earlier call has taken
effect, or, crashed, may still do so at any time. So each story proves alone that it is a lie,
whichever client crashed before: it shows the state before and after, and its values are its own.
The object has really done what the story says truthfully, so that all that follows is right again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fencepost.generators.objects import (
    NOTHING,
    AppendOnlyLog,
    Counter,
    GrowOnlySet,
    Register,
    VersionedRegister,
)
from fencepost.history.models import Model
from fencepost.history.operation import Outcome

STORY_LENGTH: Final = 16
"""The length of the longest story, in moments."""

NEW_VALUE: Final = 1 << 60
"""The first value of stories, which have `VALUES_A_STORY` each."""
VALUES_A_STORY: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldOperation:
    """An operation of a story; its times are moments, from 0 on."""

    f: str
    call: int
    end: int
    outcome: Outcome = Outcome.OK
    expected: int | None = None
    version: int | None = None
    value: int | None = None
    values: tuple[int, ...] | None = None


Story = Callable[[Any, int], list[ToldOperation]]
"""A story told to an object of the model, whose state it may change, with values from this one on.
"""


def _told(f: str, at: int, **cells: Any) -> ToldOperation:
    return ToldOperation(f=f, call=at, end=at + 1, **cells)


def _or_none(value: int) -> int | None:
    return None if value == NOTHING else value


def _shown(register: VersionedRegister, at: int) -> ToldOperation:
    return _told("read", at, version=register.version, value=_or_none(register.value))


def _write(register: VersionedRegister, at: int, value: int) -> ToldOperation:
    register.version, register.value = register.version + 1, value
    return _told("write", at, version=register.version, value=value)


def _stale_version(register: VersionedRegister, new: int) -> list[ToldOperation]:
    stale = _shown(register, 2)
    return [_write(register, 0, new), stale]


def _version_before_it_was(register: VersionedRegister, new: int) -> list[ToldOperation]:
    early = _told("read", 0, version=register.version + 1, value=new)
    return [early, _write(register, 2, new)]


def _two_values(register: VersionedRegister, new: int) -> list[ToldOperation]:
    written = _write(register, 0, new)
    return [written, _told("read", 2, version=register.version, value=new + 1)]


def _lost_swap(register: VersionedRegister, new: int) -> list[ToldOperation]:
    """Tell of two swaps of one version, one after the other: the first is forgotten."""
    before = register.version
    register.version, register.value = before + 1, new + 1
    return [
        _told("cas", at, expected=before, version=before + 1, value=value)
        for at, value in ((0, new), (2, new + 1))
    ]


def _turned_writes(register: VersionedRegister, new: int) -> list[ToldOperation]:
    before = register.version
    register.version, register.value = before + 2, new
    return [
        _told("write", 0, version=before + 2, value=new),
        _told("write", 2, version=before + 1, value=new + 1),
    ]


def _refused_though_held(register: VersionedRegister, new: int) -> list[ToldOperation]:
    refused = _told("cas", 2, expected=register.version, value=new, outcome=Outcome.FAIL)
    return [_shown(register, 0), refused, _shown(register, 4)]


def _unmade_version(register: VersionedRegister, new: int) -> list[ToldOperation]:
    register.version, register.value = register.version + 1, new
    return [_shown(register, 0)]


def _jump(register: VersionedRegister, new: int) -> list[ToldOperation]:
    before = register.version
    register.version, register.value = before + 2, new
    return [_told("cas", 0, expected=before, version=before + 2, value=new)]


def _read(value: int, at: int) -> ToldOperation:
    return _told("read", at, value=_or_none(value))


def _stale_value(register: Register, new: int) -> list[ToldOperation]:
    before, register.value = register.value, new
    return [_read(before, 0), _told("write", 2, value=new), _read(before, 4)]


def _value_before_it_was(register: Register, new: int) -> list[ToldOperation]:
    register.value = new
    return [_read(new, 0), _told("write", 2, value=new)]


def _unwritten_value(register: Register, new: int) -> list[ToldOperation]:
    del register
    return [_read(new, 0)]


def _flicker(register: Register, new: int) -> list[ToldOperation]:
    """Tell of two concurrent writes, each of which is seen after the other."""
    register.value = new
    writes = [ToldOperation(f="write", call=0, end=1, value=value) for value in (new, new + 1)]
    return [*writes, _read(new, 2), _read(new + 1, 4), _read(new, 6)]


def _append(log: AppendOnlyLog, at: int, value: int, *, offset: int | None = None) -> ToldOperation:
    log.tail = np.append(log.tail, value)
    log.count += 1
    return _told("append", at, version=log.count - 1 if offset is None else offset, value=value)


def _lost_append(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    appended = _append(log, 0, new)
    return [appended, _told("read", 2, version=log.count - 1)]


def _two_values_at_an_offset(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    appended = _append(log, 0, new)
    return [appended, _told("read", 2, version=log.count - 1, value=new + 1)]


def _two_appends_at_an_offset(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    appended = _append(log, 0, new)
    return [appended, _told("append", 2, version=log.count - 1, value=new + 1)]


def _turned_appends(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    first = log.count
    late = _append(log, 2, new + 1, offset=first)
    return [_append(log, 0, new, offset=first + 1), late]


def _append_before_it_was(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    early = _told("read", 0, version=log.count, value=new)
    return [early, _append(log, 2, new)]


def _unappended_value(log: AppendOnlyLog, new: int) -> list[ToldOperation]:
    _append(log, 0, new)
    return [_told("read", 0, version=log.count - 1, value=new)]


def _all_of(whole: GrowOnlySet, at: int, *more: int) -> ToldOperation:
    return _told("read", at, values=(*whole.elements.tolist(), *more))


def _add(whole: GrowOnlySet, at: int, value: int) -> ToldOperation:
    whole.elements = np.append(whole.elements, value)
    return _told("add", at, value=value)


def _lost_element(whole: GrowOnlySet, new: int) -> list[ToldOperation]:
    lacking = _all_of(whole, 2)
    return [_add(whole, 0, new), lacking]


def _element_before_it_was(whole: GrowOnlySet, new: int) -> list[ToldOperation]:
    early = _all_of(whole, 0, new)
    return [early, _add(whole, 2, new)]


def _unadded_element(whole: GrowOnlySet, new: int) -> list[ToldOperation]:
    return [_all_of(whole, 0, new)]


def _vanished_element(whole: GrowOnlySet, new: int) -> list[ToldOperation]:
    """Tell of an element that is seen while it is being added, and then no more."""
    lacking = _all_of(whole, 4)
    added = ToldOperation(f="add", call=0, end=8, value=new)
    _add(whole, 0, new)
    return [added, _all_of(whole, 1), lacking]


def _lost_add(counter: Counter, new: int) -> list[ToldOperation]:
    del new
    before, counter.total = counter.total, counter.total + 1
    reads = [_told("read", at, value=before) for at in (0, 4)]
    return [reads[0], _told("add", 2, value=1), reads[1]]


def _too_many(counter: Counter, new: int) -> list[ToldOperation]:
    return [_told("read", 0, value=counter.total + new)]


def _went_back(counter: Counter, new: int) -> list[ToldOperation]:
    del new
    return [_told("read", 2 * back, value=counter.total - back) for back in (0, 1)]


MODEL_LIES: Final[Mapping[Model, Mapping[str, Story]]] = {
    Model.VERSIONED_REGISTER: {
        "stale-read": _stale_version,
        "early-read": _version_before_it_was,
        "two-values": _two_values,
        "lost-write": _lost_swap,
        "impossible-order": _turned_writes,
        "refused-though-held": _refused_though_held,
        "unmade-version": _unmade_version,
        "jumped-version": _jump,
    },
    Model.REGISTER: {
        "stale-read": _stale_value,
        "early-read": _value_before_it_was,
        "unwritten-value": _unwritten_value,
        "impossible-order": _flicker,
    },
    Model.LOG: {
        "lost-write": _lost_append,
        "two-values": _two_values_at_an_offset,
        "two-appends": _two_appends_at_an_offset,
        "impossible-order": _turned_appends,
        "early-read": _append_before_it_was,
        "unwritten-value": _unappended_value,
    },
    Model.SET: {
        "lost-write": _lost_element,
        "early-read": _element_before_it_was,
        "unwritten-value": _unadded_element,
        "vanished-element": _vanished_element,
    },
    Model.COUNTER: {
        "lost-write": _lost_add,
        "too-many": _too_many,
        "went-back": _went_back,
    },
}
"""The lies by model and name."""
