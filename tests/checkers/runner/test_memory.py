import json
import os
import resource
import subprocess
import sys

import pyarrow as pa
import pytest

from fencepost.checkers.runner.memory import (
    MAPPED_BYTES,
    machine_memory_bytes,
    share_bytes,
    worker_limit_bytes,
    worker_variables,
)

pytestmark = pytest.mark.slow

_WORKER = """
import json, resource, sys
import numpy as np
import fencepost.checkers.check
from fencepost.checkers.runner.memory import out_of_memory, share_bytes

limit = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
kept = np.ones(share_bytes() // 2, dtype=np.uint8)
try:
    np.ones(8 * share_bytes(), dtype=np.uint8)
except MemoryError as error:
    print(json.dumps([share_bytes(), out_of_memory(error)]))
"""


_POOL = """
import pyarrow as pa
from fencepost.checkers.runner.memory import give_back_what_is_freed

give_back_what_is_freed()
print(pa.default_memory_pool().backend_name)
"""


def test_a_worker_allocates_what_it_can_give_back() -> None:
    variables = worker_variables()
    ended = subprocess.run(
        [sys.executable, "-c", _POOL],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    there = "jemalloc" in pa.supported_memory_backends()
    assert (ended.stdout.strip() == "jemalloc") == there
    assert ("ARROW_DEFAULT_MEMORY_POOL" in variables) == there
    assert not ended.stderr  # Arrow complains of a pool that it does not have


def test_workers_share_what_all_of_them_may_take() -> None:
    assert worker_limit_bytes(4 << 30, workers=4) == (1 << 30) + MAPPED_BYTES
    assert machine_memory_bytes() > 0


def test_a_worker_with_all_checks_has_its_share_and_no_more() -> None:
    limit = worker_limit_bytes(1 << 30, workers=2)
    ended = subprocess.run(
        [sys.executable, "-c", _WORKER, str(limit)], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    share, reason = json.loads(ended.stdout)
    assert share == 512 << 20
    assert reason.startswith("it ran out of its 0.50 GiB of memory (Unable to allocate")


def test_without_a_limit_the_share_is_the_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    monkeypatch.setattr(resource, "getrlimit", lambda _: unlimited)
    assert share_bytes() == machine_memory_bytes()
