"""The recording half of a run of processes: a cluster, its wire and its clients, set up and ended.

The part in between is in `recording`.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fencepost.clusters.abilities import Route, direct, roles_in
from fencepost.clusters.evolution import ChangesReleases
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.place import Host, LeadsLinks, Site
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka_port import BrokerCluster
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.clusters.port import Cluster, Disks
from fencepost.clusters.system import Prepared, Recorded
from fencepost.clusters.systems import system_of
from fencepost.harness.manifest import note, note_damages, note_ids
from fencepost.harness.prepare.hosts import Needs, host_of
from fencepost.harness.prepare.wiring import links_of, wired_route
from fencepost.harness.progress import Progress
from fencepost.harness.run.clients import Together, model_of, tables_of, together
from fencepost.harness.run.recording import Recording
from fencepost.harness.run.starts import why_not_again, write_starts
from fencepost.harness.scenario.options import HostKind, RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.timing import RealTime
from fencepost.history.clock import Clock
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.wall_clock import WallClock
from fencepost.nemesis.wire.rules import Link
from fencepost.nemesis.wire.wire import Wire
from fencepost.workloads.kind import Setup, WorkloadKind
from fencepost.workloads.port import Workload


def record(
    scenario: Scenario,
    options: RunOptions,
    prepared: Prepared,
    *,
    run: RunDirectory,
    clock: Clock,
    progress: Progress,
) -> None:
    """Fill the run directory's raw history.

    Raise HarnessError if the recording cannot be trusted.
    """
    run_id = f"{scenario.name}/{run.root.name}"
    needs = Needs(
        run_id=run_id,
        nodes=scenario.cluster.nodes,
        directory=run.nodes,
        prepared=prepared,
        progress=progress.say,
    )
    with (
        Ledger(run_id=run_id) as ledger,
        Warden(run_id=run_id, will=ledger.will) as warden,
        host_of(options, needs, warden=warden, ledger=ledger) as host,
        ExitStack() as stack,
    ):
        cluster, route = _placed(
            scenario, options, prepared, host=host, directory=run.nodes, clock=clock
        )
        links = links_of(cluster, route)
        wire = stack.enter_context(
            _wire(links, cluster, options, host=host, warden=warden, run=run, clock=clock)
        )
        stack.enter_context(_started(cluster, progress))
        taped = any(link.protocol is not LinkProtocol.BYTES for link in links)
        _note_cluster(run, cluster, scenario, options, taped=taped)
        if isinstance(cluster, BrokerCluster):
            cluster.create_topics(scenario.topics)
        if wire is not None:
            wire.name_topics(cluster.view().names_of_ids)
        stack.enter_context(cluster.watch(run.raw, topics=[t.name for t in scenario.topics]))
        workload = _workload(
            scenario, cluster, prepared, warden=warden, run=run, clock=clock, seed=options.seed
        )
        Recording(
            scenario=scenario,
            cluster=cluster,
            workload=workload,
            wire=wire,
            links=links,
            run=run,
            clock=clock,
            progress=progress,
            seed=options.seed,
            wall=_wall_clock(options, run, clock),
        ).go()
        if why_not_again(scenario.cluster, make=options.cluster, host=options.host) is None:
            write_starts(run, cluster, links)
        stack.close()
        _testify(cluster, scenario, run, progress)


def _wall_clock(options: RunOptions, run: RunDirectory, clock: Clock) -> WallClock | None:
    """Return the wall clock of the nodes; None if they are on machines of their own."""
    if not options.host.shares_clock:
        return None
    return WallClock(clock, origin_utc_ns=read_manifest(run.manifest_path).origin_utc_ns)


def _workload(
    scenario: Scenario,
    cluster: Recorded,
    prepared: Prepared,
    *,
    warden: Warden,
    run: RunDirectory,
    clock: Clock,
    seed: int,
) -> Together:
    """Return the clients of the run, none of them started."""

    def build(kind: WorkloadKind, spec: Any, seed: int) -> Workload:
        setup = Setup(
            cluster=cluster,
            prepared=prepared,
            topics=scenario.topics,
            warden=warden,
            run=run,
            clock=clock,
            seed=seed,
            first_process=kind.first_process,
        )
        return kind.build(spec, setup)

    return together(scenario, build, seed=seed, time=RealTime())


def _placed(
    scenario: Scenario,
    options: RunOptions,
    prepared: Prepared,
    *,
    host: Host,
    directory: Path,
    clock: Clock,
) -> tuple[Recorded, Route]:
    """Return the cluster, with nothing of it running yet, and how its nodes find each other."""
    route: Route = direct
    if options.wire:
        route = wired_route(scenario.cluster.nodes, host=host, clients=scenario.wires_clients)
    cluster = options.cluster.driver.build(
        scenario.cluster,
        prepared,
        site=Site(
            host=host, directory=directory, clock=clock, port_base=options.port_base, route=route
        ),
        rules_off=options.without_rules,
    )
    return cluster, route


@contextmanager
def _wire(
    links: tuple[Link, ...],
    cluster: Recorded,
    options: RunOptions,
    *,
    host: Host,
    warden: Warden,
    run: RunDirectory,
    clock: Clock,
) -> Iterator[Wire | None]:
    """The proxy on these links; None if the run has none."""
    if not options.wire:
        yield None
        return
    log, dialect = run.nodes / "wire.log", options.cluster.of_our_own
    with Wire(
        links,
        warden=warden,
        directory=run.raw,
        log=log,
        clock=clock,
        dialect=dialect,
        answered=cluster.is_answered,
    ) as wire:
        if isinstance(host, LeadsLinks):
            host.lead([(link.source, link.address, link.port) for link in links])
        yield wire


def _note_cluster(
    run: RunDirectory, cluster: Recorded, scenario: Scenario, options: RunOptions, *, taped: bool
) -> None:
    """Have the manifest say what runs, where, and what is to be recorded of it."""
    note(
        run,
        versions=dict(cluster.versions) | _where(options, scenario.cluster.disks),
        node_ids=dict(cluster.node_ids),
        second_roles={str(node): role for node, role in roles_in(cluster).second.items()},
        recorded=_tables(scenario, taped=taped),
        model=model_of(scenario),
        stuck_isr_limit_s=scenario.recovery_limit_s,
    )


def _where(options: RunOptions, disks: Disks) -> dict[str, str]:
    """Return the host of the nodes and their disks, image and inventory where not the default."""
    where = {} if options.host is HostKind.LOCAL else {"host": str(options.host)}
    if disks is not Disks.SHARED:
        where["disks"] = str(disks)
    if options.image is not None:
        where["image"] = options.image
    if options.inventory is not None:
        where["inventory"] = str(options.inventory)
    return where


def _tables(scenario: Scenario, *, taped: bool) -> tuple[str, ...]:
    """Return the tables of the cluster that this run sets out to record.

    `taped`: a proxy reads what some links carry.
    """
    tape = ("wire", "windows") if taped else ()
    lain = system_of(scenario.cluster).tables
    return tuple(dict.fromkeys((*tape, *lain, *tables_of(scenario))))


def _testify(
    cluster: Recorded,
    scenario: Scenario,
    run: RunDirectory,
    progress: Progress,
) -> None:
    """Copy what the stopped nodes have on their disks; what cannot be read is a shortfall."""
    if isinstance(cluster, ChangesReleases):
        note(run, changes=cluster.changes())
    report = cluster.testify(run.raw, topics=[topic.name for topic in scenario.topics])
    note_ids(run, cluster)
    note_damages(run, report.damaged)
    progress.say(report.summary)


@contextmanager
def _started(cluster: Cluster, progress: Progress) -> Iterator[None]:
    begin_s = progress.elapsed_s()
    try:
        cluster.start()
        took_s = progress.elapsed_s() - begin_s
        progress.say(f"{len(cluster.nodes)} nodes are up after {took_s:.1f} s")
        yield
    finally:
        cluster.stop()
