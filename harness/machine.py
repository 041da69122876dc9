"""The machine that something was measured on, as records of it say."""

import os
import platform

import psutil


def machine_facts() -> dict[str, str]:
    """Return system, Python, cores and memory."""
    return {
        "system": platform.platform(),
        "python": platform.python_version(),
        "cores": str(os.cpu_count()),
        "memory_bytes": str(psutil.virtual_memory().total),
    }
