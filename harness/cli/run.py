"""`fencepost run` and `fencepost replay`.

The modules that run (`harness.cli.running`) are imported once the scenario is read: that takes
seconds, and a mistake in the scenario or in a flag has to be reported before.
"""

import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from clusters.systems import KAFKA, MAKES, system_of
from harness.cli.options import as_json, results_option, spark_master_option
from harness.progress import Progress
from harness.run.replay import replayed
from harness.scenario.options import HostKind, RunOptions
from harness.scenario.scenario import load_scenario
from harness.scenario.sources import find_scenario
from harness.seeds import SEED_MAX, new_seed
from history.manifest import read_manifest
from history.run_directory import find_run

__all__ = ["host_words", "options_from", "replay", "run", "with_run_options"]

_run_options = (
    results_option,
    spark_master_option,
    click.option("--keep-data", is_flag=True, help="Keep the nodes' data also of a valid run."),
    click.option(
        "--alongside", is_flag=True, help="Run although another run is under way on this machine."
    ),
    click.option(
        "--port-base",
        type=click.IntRange(1024, 65000),
        help="First port that nodes listen on. [default: any free ports]",
    ),
    click.option(
        "--no-wire",
        is_flag=True,
        help="Let the nodes reach each other directly: no tape, no holds, no partitions.",
    ),
    click.option(
        "--cluster",
        type=click.Choice([*MAKES]),
        help="What the nodes are: Kafka, our own as processes, or ours in virtual time. "
        "[default: kafka; where its release cannot be fetched: reference]",
    ),
    click.option(
        "--host",
        type=click.Choice([str(kind) for kind in HostKind]),
        default=str(HostKind.LOCAL),
        show_default=True,
        help="Where the nodes run.",
    ),
    click.option(
        "--image", help="Of the containers of --host docker. [default: a small Debian, made here]"
    ),
    click.option(
        "--inventory",
        type=click.Path(path_type=Path),
        help="The machines of --host ssh: a YAML file.",
    ),
    click.option(
        "--without-rule",
        "without_rules",
        multiple=True,
        metavar="RULE",
        help="A rule that our own nodes are not to keep: its bug is open then.",
    ),
    as_json,
)


def with_run_options(command: Any) -> Any:
    """The flags that say how to run, apart from what."""
    for option in reversed(_run_options):
        command = option(command)
    return command


@click.command()
@click.argument("scenario")
@click.option(
    "--kafka",
    help="Release of Apache Kafka (4.3.1), path:DIR of a build of yours, or image:DIR in --image.",
)
@click.option("--metadata-version", help="Start the cluster at this metadata.version (3.5-IV1).")
@click.option("--seed", type=click.IntRange(1, SEED_MAX), help="Repeat a run's random choices.")
@click.option("--runs", type=click.IntRange(1), default=1, help="So many runs, seed by seed.")
@click.option("--time-limit", help="How long faults and clients go on (45s, 10m, 8h).")
@click.option("--nemesis", help="Faults to draw from (kill,pause), or 'none' for no fault at all.")
@click.option("--rate", type=int, help="Records a second, of all producers; 0: as many as go.")
@click.option("--concurrency", type=int, help="So many producers and so many consumers.")
@click.option("--dry-run", is_flag=True, help="Print what a run would do, and start nothing.")
@with_run_options
def run(
    scenario: str, seed: int | None, runs: int, dry_run: bool, as_json: bool, **flags: Any
) -> int:
    """Run SCENARIO (a name or a file): start a cluster, break it, judge what clients saw."""
    loaded = load_scenario(find_scenario(scenario), _overrides(flags))
    if flags["nemesis"] == "none":
        loaded = loaded.without_faults()
    from harness.prepare.default_cluster import default_cluster  # noqa: PLC0415  # see above

    first = seed if seed is not None else new_seed()

    def options(progress: Progress) -> Iterator[RunOptions]:
        if flags["cluster"] is None:
            flags["cluster"] = default_cluster(loaded, progress.say, fetch=not dry_run)
        for number in range(runs):
            this_seed = (first + number - 1) % SEED_MAX + 1
            words = _repeat_words(scenario, this_seed, flags)
            yield options_from(flags, seed=this_seed, command=words)

    if dry_run:
        from harness.cli.plan import show_plans  # noqa: PLC0415  # see above

        return show_plans(loaded, options, as_json=as_json)
    from harness.cli.running import run_all  # noqa: PLC0415  # see above

    return run_all(loaded, options, alone=runs == 1, as_json=as_json)


@click.command()
@click.argument("run", metavar="RUN")
@click.option("--kafka", help="Another release than the run's own.")
@with_run_options
def replay(run: str, kafka: str | None, as_json: bool, **flags: Any) -> int:
    """Repeat a stored RUN: the same cluster, clients and seed, and its faults at their times."""
    stored = find_run(run, flags["results"])
    manifest = read_manifest(stored.manifest_path)
    # What was drawn stays so: a delay that met nothing meets nothing again.
    scenario = replace(replayed(stored, kafka=kafka), drawn=manifest.drawn)
    seed = manifest.seed
    if (kind := manifest.versions.get("cluster")) is not None:
        # Our own nodes: what the run had is what is repeated, whatever the flag's default.
        flags["cluster"] = kind
        off = manifest.versions.get("rules_off", "")
        flags["without_rules"] = flags["without_rules"] or tuple(filter(None, off.split(", ")))
    flags["host"] = manifest.versions.get("host", flags["host"])
    flags["image"] = flags["image"] or manifest.versions.get("image")
    flags["cluster"] = flags["cluster"] or system_of(scenario.cluster).makes[0].name
    if flags["inventory"] is None and (inventory := manifest.versions.get("inventory")) is not None:
        flags["inventory"] = Path(inventory)
    words = ["fencepost", "replay", str(stored.root), *(["--kafka", kafka] if kafka else [])]
    words += _cluster_words(flags)
    command = shlex.join([*words, *(["--no-wire"] if flags["no_wire"] else [])])
    from harness.cli.running import run_all  # noqa: PLC0415  # see above

    options = options_from(flags, seed=seed, command=command)
    return run_all(scenario, lambda _: [options], alone=True, as_json=as_json)


def options_from(flags: dict[str, Any], *, seed: int, command: str) -> RunOptions:
    """The options of one run, from the flags."""
    return RunOptions(
        results=flags["results"],
        seed=seed,
        command=command,
        keep_data=flags["keep_data"],
        wire=not flags["no_wire"],
        alongside=flags["alongside"],
        port_base=flags["port_base"],
        spark_master=flags["spark_master"],
        cluster=MAKES[str(flags["cluster"])],
        host=HostKind(flags["host"]),
        image=flags["image"],
        inventory=flags["inventory"],
        without_rules=tuple(flags["without_rules"]),
    )


def host_words(flags: dict[str, Any]) -> list[str]:
    """The flags that say where the nodes run, if they are not the default."""
    words = [] if flags["host"] == HostKind.LOCAL else ["--host", flags["host"]]
    for name in ("image", "inventory"):
        words += [] if flags[name] is None else [f"--{name}", str(flags[name])]
    return words


_FLAG_PATHS: dict[str, tuple[tuple[str, ...], ...]] = {
    "kafka": (("cluster", "kafka"),),
    "metadata_version": (("cluster", "metadata_version"),),
    "time_limit": (("time_limit",),),
    "rate": (("workload", "rate"),),
    "concurrency": (("workload", "producers"), ("workload", "consumers")),
    "nemesis": (("nemesis", "faults"),),
}


def _overrides(flags: dict[str, Any]) -> list[tuple[tuple[str, ...], object, str]]:
    found: list[tuple[tuple[str, ...], object, str]] = []
    for name, paths in _FLAG_PATHS.items():
        value = flags[name]
        if value is None or (name == "nemesis" and value == "none"):
            continue
        if name == "nemesis":
            value = [word.strip() for word in value.split(",")]
        found += [(path, value, f"--{name.replace('_', '-')}") for path in paths]
    return found


def _repeat_words(scenario: str, seed: int, flags: dict[str, Any]) -> str:
    words = ["fencepost", "run", scenario, "--seed", str(seed)]
    for name in _FLAG_PATHS:
        if flags[name] is not None:
            words += [f"--{name.replace('_', '-')}", str(flags[name])]
    words += _cluster_words(flags)
    if flags["no_wire"]:
        words.append("--no-wire")
    if flags["results"] != Path("results"):
        words += ["--results", str(flags["results"])]
    return shlex.join(words)


def _cluster_words(flags: dict[str, Any]) -> list[str]:
    words = [] if str(flags["cluster"]) == KAFKA.name else ["--cluster", str(flags["cluster"])]
    words += host_words(flags)
    for rule in flags["without_rules"]:
        words += ["--without-rule", rule]
    return words
