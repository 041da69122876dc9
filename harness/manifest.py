"""The manifest of a run: as it is before anything has happened, and what is noted on the way."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

from fencepost.clusters.evolution import ChangesIds
from fencepost.clusters.hosts.process import harness_mark
from fencepost.clusters.systems import system_of
from fencepost.harness.machine import machine_facts
from fencepost.harness.prepare.reference import promises_of
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.manifest import Manifest, RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.window_kinds import asked_strikes


def first_manifest(
    scenario: Scenario,
    options: RunOptions,
    run: RunDirectory,
    *,
    origin_ns: int,
    origin_utc_ns: int,
    known: tuple[str, ...] = (),
    expected: tuple[str, ...] = (),
) -> Manifest:
    """Return the manifest of a run that begins now.

    The origins: those of its clock, by both clocks. `known`: the findings that it reckons with.
    `expected`: the anomalies that its scenario expects of the release.
    """
    return Manifest(
        run_id=f"{scenario.name}/{run.root.name}",
        state=RunState.RUNNING,
        scenario=scenario.name,
        title=scenario.title,
        parameters=scenario.parameters,
        system=system_of(scenario.cluster).name,
        cluster=str(options.cluster),
        host=str(options.host),
        seed=options.seed,
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        origin_ns=origin_ns,
        origin_utc_ns=origin_utc_ns,
        command=options.command,
        fencepost_version=version("fencepost"),
        machine=machine_facts(),
        keys=scenario.keys,
        asked_faults=scenario.asked_faults,
        drawn=scenario.drawn,
        required_faults=scenario.require.faults,
        asked_operations=scenario.asked_operations,
        served_faults=scenario.require.served,
        required_windows=_by_own_names(scenario),
        asked_windows=scenario.asked_windows,
        asked_strikes=() if scenario.mix is None else asked_strikes(scenario.mix),
        waived=scenario.waived,
        required_checks=scenario.require.judged,
        required_bounds=scenario.require.bounds,
        known=known,
        expected=expected,
        promises=promises_of(scenario) if options.cluster.of_our_own else scenario.promises,
        harness=harness_mark(),
    )


def _by_own_names(scenario: Scenario) -> tuple[str, ...]:
    """Return the messages whose windows are demanded, as the system itself calls them."""
    names = system_of(scenario.cluster).message_names
    return tuple(names.get(message, message) for message in scenario.require.windows)


def note(run: RunDirectory, **changes: object) -> None:
    """Change these fields of the run's manifest."""
    manifest = read_manifest(run.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, **changes))  # type: ignore[arg-type]  # by name


def note_damages(run: RunDirectory, damages: Sequence[str]) -> None:
    """Note what of the disks could not be read: a shortfall, since checks did not see it."""
    if damages:
        more = f" and {len(damages) - 1} more" if len(damages) > 1 else ""
        words = f"not all that lies on the disks could be read: {damages[0]}{more}"
        shortfalls = read_manifest(run.manifest_path).shortfalls
        note(run, damages=tuple(damages), shortfalls=(*shortfalls, words))


def note_ids(run: RunDirectory, cluster: object) -> None:
    """Note which nodes had several ids, where that can be, and which they have now."""
    if isinstance(cluster, ChangesIds):
        note(run, node_ids=dict(cluster.node_ids), last_ids=dict(cluster.last_ids))
