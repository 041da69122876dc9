"""What was in force in a run: what clients were promised, settings, racks, and releases by time.

Settings are those of the nodes' configuration files (`node_settings`), and of topics and clients
as the scenario states them; what neither says has the release's default, and is not shown.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from fencepost.history.manifest import Manifest
from fencepost.history.reader import load_table
from fencepost.history.run_directory import RunDirectory
from fencepost.report.notation import moment

_SHOWN: Final = (
    *("min.insync.replicas", "default.replication.factor", "unclean.leader.election.enable"),
    *("compression.type", "broker.rack", "replica.lag.time.max.ms", "replica.selector.class"),
    *("broker.session.timeout.ms", "log.flush.interval.messages", "eligible.leader.replicas"),
)
"""The settings of nodes on which verdicts turn; all of them are in `node_settings`."""
_VALUES_MAX: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingRow:
    """A setting, its value, and for what it holds."""

    name: str
    value: str
    of: str


def in_force(run: RunDirectory, manifest: Manifest | None) -> tuple[SettingRow, ...]:
    """Return what was in force; a scenario that cannot be read tells nothing.

    Raises HarnessError if the table of settings is missing or damaged.
    """
    if manifest is None or not manifest.cluster:
        return ()
    scenario = _scenario(run)
    return (
        *_promises(manifest),
        *_of_clients(scenario),
        *_of_topics(scenario),
        *_of_nodes(run, manifest),
        *_releases(manifest),
    )


def _promises(manifest: Manifest) -> Iterator[SettingRow]:
    promises = manifest.promises
    # Clients of objects are promised nothing of this.
    if manifest.keys and not manifest.model and promises.acks:
        yield SettingRow(name="acks", value=promises.acks, of="producers")
        value = "true" if promises.idempotent else "false"
        yield SettingRow(name="enable.idempotence", value=value, of="producers")
    for name, bound in manifest.required_bounds.items():
        word, _, unit = name.rpartition("_")
        value = f"{bound:g} {unit}".removesuffix(" count")
        yield SettingRow(name=word, value=value, of="required by the scenario")


def _of_clients(scenario: Mapping[str, Any]) -> Iterator[SettingRow]:
    stated = scenario.get("workload")
    for workload in stated if isinstance(stated, list) else [stated]:
        if not isinstance(workload, dict):
            continue
        settings = workload.get("settings")
        for name, value in settings.items() if isinstance(settings, dict) else ():
            of = f"clients of {workload.get('kind')}"
            yield SettingRow(name=str(name), value=_text(value), of=of)


def _of_topics(scenario: Mapping[str, Any]) -> Iterator[SettingRow]:
    topics = scenario.get("topics")
    for topic in topics if isinstance(topics, list) else ():
        settings = topic.get("settings") if isinstance(topic, dict) else None
        for name, value in settings.items() if isinstance(settings, dict) else ():
            yield SettingRow(name=str(name), value=_text(value), of=f"topic {topic.get('name')}")


def _of_nodes(run: RunDirectory, manifest: Manifest) -> Iterator[SettingRow]:
    """Yield what nodes were given: one row for all nodes of one value, and for each change."""
    if "node_settings" not in manifest.recorded:
        return
    found: dict[tuple[str, str, int | None], list[str]] = {}
    for row in load_table(run, "node_settings").to_pylist():
        if row["name"] in _SHOWN:
            key = row["name"], row["value"], row["since_ns"]
            found.setdefault(key, []).append(row["node"])
    for (name, value, since_ns), nodes in sorted(found.items(), key=lambda one: one[0][0]):
        since = "" if since_ns is None else f", from their next start after {moment(since_ns)} on"
        shown = ", ".join(nodes[:_VALUES_MAX])
        more = len(nodes) - _VALUES_MAX
        of = f"{shown}{f' and {more} more' if more > 0 else ''}{since}"
        yield SettingRow(name=name, value=value, of=of)


def _releases(manifest: Manifest) -> Iterator[SettingRow]:
    yield SettingRow(name="release", value=manifest.release.split(", ")[0], of="from the start")
    for change in manifest.changes:
        of = f"{change.subject}, from {moment(change.time_ns)} on"
        yield SettingRow(name="release", value=change.version, of=of)


def _scenario(run: RunDirectory) -> Mapping[str, Any]:
    """Return the scenario as it was run; empty if it cannot be read."""
    try:
        found = yaml.safe_load(run.scenario_path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
