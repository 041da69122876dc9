"""A run in virtual time: the scenario of a real cluster, on a simulated one, into the same files.

Everything that happens is drawn from the seed, so that the same command records the same history,
bit for bit; the manifest's versions have the digest of all events. The wall clock of such a run
begins at a fixed moment.
"""

from contextlib import ExitStack, nullcontext
from typing import Any, Final

from fencepost.clusters.port import CLIENTS
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import (
    CLIENTS_FROM,
    HARNESS_FROM,
    SimulatedCluster,
)
from fencepost.harness.manifest import note, note_damages, note_ids
from fencepost.harness.progress import Progress
from fencepost.harness.run.clients import Together, tables_of, together
from fencepost.harness.run.recording import Recording
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.virtual.evidence import (
    ORIGIN_UTC_NS,
    Overheard,
    SimulatedTime,
    few_collections,
    recorded_tables,
    stamps,
    testify,
)
from fencepost.harness.virtual.looks import SimulatedLooks
from fencepost.history.run_directory import RunDirectory
from fencepost.nemesis.simulated.tape import BufferedTape
from fencepost.nemesis.simulated.wire import SimulatedWire
from fencepost.nemesis.wire.rules import Link
from fencepost.workloads.kind import SimulatedSetup

_S: Final = 1_000_000_000


def prepare_simulated(scenario: Scenario, options: RunOptions) -> SimulatedCluster:
    """Return the cluster of a scenario, not started yet."""
    driver: Any = options.cluster.driver
    cluster: SimulatedCluster = driver.simulate(
        scenario.cluster, seed=options.seed, rules_off=options.without_rules
    )
    return cluster


def record_simulated(
    scenario: Scenario,
    options: RunOptions,
    cluster: SimulatedCluster,
    *,
    run: RunDirectory,
    progress: Progress,
) -> None:
    """Fill the run directory's raw history.

    Raise HarnessError if the recording cannot be trusted.
    """
    topics = [topic.name for topic in scenario.topics]
    for ignored in cluster.kit.ignored_settings:
        progress.say(f"{ignored} means nothing to a simulated node")
    times = AppendTimes(ORIGIN_UTC_NS)
    cluster.world.watch(Overheard(stamps(times)))
    cluster.kit.keep_metadata(cluster.disks, run.raw, times=times)
    with ExitStack() as stack:
        stack.enter_context(few_collections())
        tape = BufferedTape(run.raw) if options.wire else None
        wire = None
        if tape is not None:
            stack.callback(tape.close)
            wire = _wire(cluster, tape, clients=scenario.wires_clients)
        cluster.start()
        progress.say(f"{len(cluster.nodes)} nodes are up at {cluster.world.now_ns / _S:.2f} s")
        _note_cluster(cluster, scenario, options, run)
        cluster.create_topics(scenario.topics)
        if wire is not None:
            wire.name_topics(cluster.view().topic_ids)
        stack.enter_context(cluster.recorded(run.raw, topics=topics))
        time = SimulatedTime(cluster)
        Recording(
            scenario=scenario,
            cluster=cluster,
            workload=_workload(scenario, cluster, run, options.seed),
            wire=wire,
            links=_links(cluster, clients=scenario.wires_clients),
            run=run,
            clock=time,
            progress=progress,
            seed=options.seed,
            time=time,
            observing=lambda acknowledged: nullcontext(
                SimulatedLooks(
                    cluster,
                    acknowledged=acknowledged,
                    rules={} if wire is None else wire.rules,
                    topics=topics,
                )
            ),
        ).go()
        cluster.stop()
    note_damages(run, testify(cluster, topics, times, run=run, say=progress.say))
    note_ids(run, cluster)
    note(run, versions=dict(cluster.versions))


def _note_cluster(
    cluster: SimulatedCluster, scenario: Scenario, options: RunOptions, run: RunDirectory
) -> None:
    tables = recorded_tables(cluster, wired=options.wire, clients=tables_of(scenario))
    note(
        run,
        node_ids=cluster.node_ids,
        second_roles={str(node): role for node, role in cluster.node_roles.second.items()},
        recorded=("windows", *tables),
        stuck_isr_limit_s=scenario.recovery_limit_s,
    )


def _wire(cluster: SimulatedCluster, tape: BufferedTape, *, clients: bool) -> SimulatedWire:
    return SimulatedWire(
        cluster.world,
        journal=tape,
        clients_from=CLIENTS_FROM,
        harness_from=HARNESS_FROM,
        clients=clients,
        overhears=True,
    )


def _links(cluster: SimulatedCluster, *, clients: bool) -> list[Link]:
    return [
        Link(source=end.source, target=end.target, address="", port=0)
        for end in cluster.links()
        if clients or end.source != CLIENTS
    ]


def _workload(
    scenario: Scenario, cluster: SimulatedCluster, run: RunDirectory, seed: int
) -> Together:
    return together(
        scenario,
        lambda kind, spec, seed: kind.build_simulated(
            spec,
            SimulatedSetup(
                cluster=cluster,
                topics=scenario.topics,
                run=run,
                seed=seed,
                first_process=kind.first_process,
            ),
        ),
        seed=seed,
        time=SimulatedTime(cluster),
    )
