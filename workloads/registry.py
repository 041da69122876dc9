"""The kinds of workload: every module `workloads/*_spec.py` that has a `KIND`."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from fencepost import workloads
from fencepost.workloads.kind import WorkloadKind


def _found() -> Iterator[WorkloadKind]:
    for module in pkgutil.iter_modules(workloads.__path__, f"{workloads.__name__}."):
        if module.name.endswith("_spec"):
            yield import_module(module.name).KIND


KINDS: Final[dict[str, WorkloadKind]] = {
    kind.word: kind for kind in sorted(_found(), key=lambda kind: (kind.first_process, kind.word))
}
"""The kinds by their word under `kind`: those of records, then those that accompany them."""


def kind_of(spec: Any) -> WorkloadKind:
    """Return the kind of a workload, by what a scenario says of it."""
    return next(kind for kind in KINDS.values() if kind.spec is type(spec))
