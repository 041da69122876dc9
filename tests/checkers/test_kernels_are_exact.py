"""Every kernel answers as its slow definition does, on random small histories."""

from collections.abc import Callable

import numpy as np
import pytest
from histories import History
from hypothesis import given, settings
from hypothesis import strategies as st
from judging import setting_of
from slow_checks import SlowKey
from small_histories import KEY, histories

from fencepost.checkers.anomaly import Anomaly, anomalies_of
from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_log import key_log
from fencepost.checkers.data_plane.log import _by_sorting, _by_table
from fencepost.history.manifest import Readers

pytestmark = pytest.mark.slow

_CHECKS = KEY_ASSUMPTIONS | KEY_CHECKS


def _pair(anomaly: Anomaly) -> tuple[int, ...]:
    return (anomaly.operations[0], anomaly.operations[-1], *anomaly.values)


_PROOFS: dict[str, Callable[[Anomaly], tuple[int, ...]]] = {
    "aborted-read": lambda anomaly: (anomaly.operations[1], *anomaly.values),
    "inconsistent-offset": lambda anomaly: (*anomaly.offsets, *anomaly.values),
    "duplicate": lambda anomaly: (*anomaly.values, *anomaly.offsets),
    "nonmonotonic-poll": _pair,
    "skipped-poll": _pair,
    "internal-nonmonotonic-poll": _pair,
    "internal-skipped-poll": _pair,
    "nonmonotonic-send": _pair,
}


READERS = tuple(
    Readers(name=str(processes), processes=processes, stride=4, poll_max=1)
    for processes in ((0, 1), (2,), (3,))
)


def _slow(past: History, *, idempotent: bool, consume: str) -> SlowKey:
    operations = past.operations.to_pylist()
    return SlowKey(
        rows=past.of_key(KEY).to_pylist(),
        final_reads=[
            one for one in operations if one["f"] == "final-read" and one["outcome"] == "ok"
        ],
        info_polls={
            (one["process"], one["index"])
            for one in operations
            if one["f"] == "poll" and one["outcome"] == "info"
        },
        idempotent=idempotent,
        consume=consume,
        readers=READERS,
    )


@settings(max_examples=10 * settings().max_examples)
@given(past=histories(), idempotent=st.booleans(), consume=st.sampled_from(["assign", "both"]))
def test_every_kernel_finds_what_its_definition_says(
    past: History,
    idempotent: bool,  # noqa: FBT001 - hypothesis gives it by name
    consume: str,
) -> None:
    setting = setting_of(past, idempotent=idempotent, consume=consume, readers=READERS)
    log = key_log(KEY, past.of_key(KEY), setting)
    slow = _slow(past, idempotent=idempotent, consume=consume)
    doubts, cases = slow.doubts(), slow.cases()
    for name, check in _CHECKS.items():
        found = check.kernel(log)
        proof = _PROOFS.get(name, lambda anomaly: anomaly.values)
        fast = sorted((one.allowed, proof(one)) for one in anomalies_of(found.table))

        assert fast == sorted(getattr(slow, name.replace("-", "_"))()), name
        assert bool(found.doubt) == (name in doubts), name
        assert found.case_count == cases[name], name
        assert found.never_count + found.allowed_count == len(fast), name


@given(
    rows=st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), min_size=1),
    scale=st.sampled_from([1, 1000]),
)
def test_both_ways_to_build_a_log_agree(rows: list[tuple[int, int]], scale: int) -> None:
    offsets = np.array([offset * scale for offset, _ in rows])
    values = np.array([value for _, value in rows])
    table, sorting = _by_table(offsets, values), _by_sorting(offsets, values)
    if table is None:
        return
    for name in ("offset", "value", "position"):
        assert np.array_equal(getattr(table[0], name), getattr(sorting[0], name))
    assert np.array_equal(table[1], sorting[1])
