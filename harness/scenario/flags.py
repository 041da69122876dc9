"""The flags that lay values over a scenario, by the paths where these stand in it."""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.harness.scenario.composed import PARAMETERS, chosen_values
from fencepost.harness.scenario.on_other_system import SYSTEM_KEY
from fencepost.harness.scenario.requirement import NO_REQUIRE

FLAG_PATHS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "system": (SYSTEM_KEY,),
    "kafka": (("cluster", "kafka"),),
    "release": (("cluster", "release"),),
    "metadata_version": (("cluster", "metadata_version"),),
    "time_limit": (("time_limit",),),
    "rate": (("workload", "rate"),),
    "concurrency": (("workload", "producers"), ("workload", "consumers")),
    "nemesis": (("nemesis", "faults"),),
    "window": (("nemesis", "windows"),),
}
_LISTS = ("nemesis", "window")
"""The flags that take words with commas in between."""


def flag_overrides(flags: Mapping[str, Any]) -> list[tuple[tuple[str, ...], object, str]]:
    """Return what these flags lay over a scenario: (path, value, flag); None is no flag."""
    found: list[tuple[tuple[str, ...], object, str]] = []
    for name, paths in FLAG_PATHS.items():
        value = flags.get(name)
        if value is None or (name == "nemesis" and value == "none"):
            continue
        if name in _LISTS:
            value = [word.strip() for word in value.split(",")]
        found += [(path, value, f"--{name.replace('_', '-')}") for path in paths]
    chosen = chosen_values(flags.get("set") or ())
    found += [((PARAMETERS, name), value, f"--set {name}") for name, value in chosen.items()]
    if flags.get("no_require"):
        found.append((("require",), {}, NO_REQUIRE))
    return found
