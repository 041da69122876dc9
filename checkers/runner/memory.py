"""The memory that the checkers may take: its default, and the limit set on each worker.

Kernels run in Python workers, one a core. Spark limits the address space of each (RLIMIT_AS), so
that an allocation beyond it is refused inside the kernel, as a MemoryError: one check of one key is
unknown, and everything else goes on. Without a limit the kernel of the operating system would end
the worker, or whatever else it takes for the culprit, and with it the job.

An address space is larger than what is used of it: threads have stacks and heaps that they never
touch. So a worker may map `MAPPED_BYTES` beyond its share.
"""

import ctypes
import os
import resource
from pathlib import Path
from typing import Final

import pyarrow as pa

MAPPED_BYTES: Final = 1536 << 20
"""The address space mapped by a worker that has imported all checks (1.4 GB; it uses a tenth)."""

_RETURNING: Final = "jemalloc"
_LARGE_BYTES: Final = 1 << 18
"""A block from this size on is a mapping of its own, and gone when it is freed (mallopt(3))."""
_SHARE: Final = 0.6
"""The share of the machine: the rest is for the driver, its JVM and other processes."""
_CGROUP_LIMITS: Final = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def worker_variables() -> dict[str, str]:
    """Return the environment in which workers give back what they free, where Arrow's build can.

    Its usual allocator keeps it for the next table, and glibc large arrays: a worker that goes from
    slice to slice would hold the most that any of them took, beside what it uses.
    """
    there = _RETURNING in pa.supported_memory_backends()
    pool = {"ARROW_DEFAULT_MEMORY_POOL": _RETURNING} if there else {}
    return {**pool, "MALLOC_MMAP_THRESHOLD_": str(_LARGE_BYTES)}


def give_back_what_is_freed() -> None:
    """Have Arrow return memory to the system as it is freed, in a worker with these variables."""
    if pa.default_memory_pool().backend_name == _RETURNING:
        pa.jemalloc_set_decay_ms(0)


def give_back() -> None:
    """Return to the system what the process has freed piece by piece, where that can be done.

    Python's small values lie among each other: without it a worker holds what its largest slice
    took, as holes.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def machine_memory_bytes() -> int:
    """Return the default memory for all workers together on this machine or in this container."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return int(min([machine, *_container_limits()]) * _SHARE)


def worker_limit_bytes(memory_bytes: int, *, workers: int) -> int:
    """Return the address space of each of these workers, if they may take so much together."""
    return memory_bytes // workers + MAPPED_BYTES


def share_bytes() -> int:
    """Return the memory this process may take: its share in a worker, else that of all workers."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return machine_memory_bytes()
    return max(0, limit - MAPPED_BYTES)


def out_of_memory(error: MemoryError) -> str:
    """Return the reason of an answer that needed more, in the worker that could not get it."""
    what = f" ({error})" if str(error) else ""
    return f"it ran out of its {share_bytes() / (1 << 30):.2f} GiB of memory{what}"


def _container_limits() -> list[int]:
    found = []
    for path in _CGROUP_LIMITS:
        try:
            found.append(int(path.read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return found
