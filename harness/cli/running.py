"""The bodies of `fencepost run` and `fencepost replay`: one run after the other, with its verdict.

Slow imports happen where they are needed, so that a refusal does not wait for them.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from fencepost.clusters.systems import AUTO, MAKES, SYSTEMS, system_of
from fencepost.harness.cli.keeping import Keeping
from fencepost.harness.cli.options import emit_json
from fencepost.harness.progress import Progress, terminal_progress
from fencepost.harness.scenario.flags import FLAG_PATHS, flag_overrides
from fencepost.harness.scenario.options import HostKind, RunOptions
from fencepost.harness.scenario.requirement import NO_REQUIRE
from fencepost.harness.scenario.scenario import Scenario, load_scenario, parse_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.scenario.yaml_file import Document
from fencepost.harness.seeds import SEED_MAX, new_seed
from fencepost.history.failure import UsageError
from fencepost.history.manifest import read_manifest
from fencepost.history.run_directory import RunDirectory, find_run
from fencepost.nemesis.verbs.registry import VERBS

_STARTING = (Storm.CHAOS, Storm.MIX, Storm.PLAY)
"""The storms all of whose starts may be those of misfits: in others only some are, or none."""
_START = "start"
_TAKE_DOWN = tuple(
    verb.word for verb in VERBS.values() if verb.action is not None and verb.action.takes_down
)
_OF_SUBJECT = ("system", "kafka", "release")
"""The flags that say on what a scenario runs, and no variant of it."""
_SLACK_S = 60.0
"""A replay may run late: an election takes as long as it takes."""


def scenario_of(scenario: str, flags: dict[str, Any]) -> Scenario:
    """Return the scenario with what flags of a run lay over it."""
    loaded = load_scenario(find_scenario(scenario), flag_overrides(flags))
    return loaded.without_faults() if flags["nemesis"] == "none" else loaded


def run(
    scenario: str, seed: int | None, runs: int, dry_run: bool, as_json: bool, **flags: Any
) -> int:
    """Run SCENARIO (a name or a file): start a cluster, break it, judge what clients saw."""
    loaded = scenario_of(scenario, flags)
    first = seed if seed is not None else new_seed()

    def options(progress: Progress) -> Iterator[RunOptions]:
        choose_cluster(loaded, flags, progress, is_dry=dry_run)
        for number in range(runs):
            this_seed = (first + number - 1) % SEED_MAX + 1
            words = repeat_words(scenario, this_seed, flags)
            yield options_from(flags, seed=this_seed, command=words)

    if dry_run:
        from fencepost.harness.cli.plan import show_plans

        return show_plans(loaded, options, as_json=as_json)
    variant = shlex.join(variant_words(flags))
    after = Keeping.from_flags(flags)
    return _run_all(loaded, options, run_count=runs, variant=variant, after=after, as_json=as_json)


def choose_cluster(
    scenario: Scenario, flags: dict[str, Any], progress: Progress, *, is_dry: bool = False
) -> None:
    """Put the kind of cluster into the flags that they leave open. `is_dry`: fetch nothing."""
    from fencepost.harness.prepare.releases import (
        available_cluster,
        default_cluster,
        say_what_is_fetched,
    )
    from fencepost.harness.run.lock import refuse_beside_another

    if flags["cluster"] is None:
        make = default_cluster(scenario)
        if is_dry:
            say_what_is_fetched(scenario, make, progress.say)
        flags["cluster"] = make
    elif flags["cluster"] == AUTO:
        refuse_beside_another(scenario, alongside=flags["alongside"])
        flags["cluster"] = available_cluster(scenario, progress.say, fetch=not is_dry)


def replay(run: str, kafka: str | None, as_json: bool, **flags: Any) -> int:
    """Repeat a stored RUN: the same cluster, clients and seed, and its faults at their times."""
    stored = find_run(run, flags["results"])
    manifest = read_manifest(stored.manifest_path)
    # Drawn faults stay drawn: a delay that met nothing meets nothing again.
    again = replayed(stored, kafka=kafka)
    # So does what was waived: the stored scenario no longer demands it.
    waived = tuple(dict.fromkeys((*manifest.waived, *again.waived)))
    scenario = replace(again, drawn=manifest.drawn, waived=waived, parameters=manifest.parameters)
    seed = manifest.seed
    if (kind := manifest.versions.get("cluster")) is not None:
        # Our own nodes: what the run had is what is repeated, whatever the flag's default.
        flags["cluster"] = kind
        off = manifest.versions.get("rules_off", "")
        flags["without_rules"] = flags["without_rules"] or tuple(filter(None, off.split(", ")))
    flags["host"] = manifest.versions.get("host", flags["host"])
    flags["image"] = flags["image"] or manifest.versions.get("image")
    if flags["cluster"] == AUTO:
        raise UsageError("--cluster auto: a replay uses the cluster of its run; leave it out")
    flags["cluster"] = flags["cluster"] or system_of(scenario.cluster).makes[0].name
    if flags["inventory"] is None and (inventory := manifest.versions.get("inventory")) is not None:
        flags["inventory"] = Path(inventory)
    words = ["fencepost", "replay", str(stored.root), *(["--kafka", kafka] if kafka else [])]
    words += [*variant_words(flags), *cluster_words(flags)]
    command = shlex.join(words)
    options = options_from(flags, seed=seed, command=command)
    after = Keeping.from_flags(flags)
    return _run_all(
        scenario, lambda _: [options], run_count=1, variant="", after=after, as_json=as_json
    )


def options_from(flags: dict[str, Any], *, seed: int, command: str) -> RunOptions:
    """Return the options of one run, from the flags."""
    return RunOptions(
        results=flags["results"],
        seed=seed,
        command=command,
        keep_data=flags["keep_data"],
        keeps_running=flags["keep_s"] is not None,
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
    """Return the flags that say where the nodes run, if they are not the default."""
    words = [] if flags["host"] == HostKind.LOCAL else ["--host", flags["host"]]
    for name in ("image", "inventory"):
        words += [] if flags[name] is None else [f"--{name}", str(flags[name])]
    return words


def repeat_words(scenario: str, seed: int, flags: dict[str, Any]) -> str:
    """Return the command that makes this run again."""
    words = ["fencepost", "run", scenario, "--seed", str(seed)]
    for name in _OF_SUBJECT:
        words += [f"--{name}", str(flags[name])] if flags[name] is not None else []
    words += [*variant_words(flags), *cluster_words(flags)]
    if flags["results"] != Path("results"):
        words += ["--results", str(flags["results"])]
    return shlex.join(words)


def variant_words(flags: dict[str, Any]) -> list[str]:
    """Return the flags that tell a run from others of its scenario, release, cluster and host."""
    words = []
    for name in FLAG_PATHS:
        if name not in _OF_SUBJECT and flags.get(name) is not None:
            words += [f"--{name.replace('_', '-')}", str(flags[name])]
    words += [word for one in flags.get("set") or () for word in ("--set", one)]
    words += [NO_REQUIRE] if flags.get("no_require") else []
    words += [word for rule in flags["without_rules"] for word in ("--without-rule", rule)]
    return words + (["--no-wire"] if flags["no_wire"] else [])


def cluster_words(flags: dict[str, Any]) -> list[str]:
    """Return the flags that say of what kind the nodes are, and where they run."""
    first = {system.makes[0].name for system in SYSTEMS.values()}
    words = [] if str(flags["cluster"]) in first else ["--cluster", str(flags["cluster"])]
    return words + host_words(flags)


def _run_all(
    scenario: Scenario,
    options: Callable[[Progress], Iterable[RunOptions]],
    *,
    run_count: int,
    variant: str,
    after: Keeping,
    as_json: bool,
) -> int:
    """Run once for each of `options`, and return the exit code of them together.

    A failed run raises its HarnessError if it is the only one; in a series it is a result, and the
    series goes on. `after`: what becomes of the first cluster that is to be kept running.
    `as_json`: print one document on standard output, and all else beside it.
    """
    if run_count > 1:
        from fencepost.harness.cli.run_series import run_series

        outcomes = run_series(
            scenario, options, run_count=run_count, variant=variant, aside=as_json
        )
    else:
        with terminal_progress() as progress:
            (one,) = options(progress)
            progress.say(f"{scenario.title} (repeat: {one.command})")
            from fencepost.harness.cli.single_run import run_once

            outcome = run_once(scenario, one, progress, progress.say)
        from fencepost.harness.cli.verdicts import say_verdict

        say_verdict(outcome, aside=as_json)
        outcomes = [outcome]
    from fencepost.harness.cli.verdicts import exit_code_of, invalid_runs, outcome_json

    after.keep_first(invalid_runs(outcomes), aside=as_json)

    if as_json:
        emit_json([outcome_json(outcome) for outcome in outcomes])
    return exit_code_of(outcomes)


def replayed(run: RunDirectory, *, kafka: str | None) -> Scenario:
    """Return the scenario that repeats `run`: its own cluster, and the play that it performed.

    A node that had died on its own was started again when everything was healed. That start is left
    out: nothing in the play takes the node down, and if it dies again, the end of the run heals it
    again. The play of a trial is its drawn faults as they happened, at their very nanoseconds: done
    again then, it makes the same world, or, with a step left out, the same one up to there. Raise
    UsageError if the run ended before its play began.
    """
    if not run.play_path.is_file() or not run.scenario_path.is_file():
        raise UsageError(f"{run.root}: it performed no play, so there is nothing to repeat")
    steps = yaml.safe_load(run.play_path.read_text(encoding="utf-8")) or []
    overrides = [(("cluster", "kafka"), kafka, "--kafka")] if kafka else []
    original = load_scenario(run.scenario_path, overrides)
    document = original.document.without("nemesis", "play")
    if original.trial is not None:
        return parse_scenario(_same_world(document, steps, str(run.play_path)))
    document = document.with_flag(("play",), _repeatable(steps), str(run.play_path))
    scenario = parse_scenario(document)
    last_s = max((step.at_s or 0.0 for step in scenario.play or ()), default=0.0)
    return replace(scenario, time_limit_s=max(original.time_limit_s, last_s) + _SLACK_S)


def _same_world(document: Document, steps: Sequence[Mapping[str, Any]], place: str) -> Document:
    """Return the document with a trial's deeds, at their times, in place of what drew them."""
    drawn = ["storm", "laggards", "duels"]
    if document.data["trial"]["storm"] not in _STARTING:
        drawn += ["old_software", "other_ids", "ill_timed", "unformatted"]
    kept = {key: value for key, value in document.data["trial"].items() if key not in drawn}
    document = document.with_flag(("trial",), {"storm": str(Storm.PLAY), **kept}, place)
    return document.with_flag(("play",), list(steps), place)


def _repeatable(steps: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    down: set[str] = set()
    kept = []
    for step in steps:
        for word in _TAKE_DOWN:
            down |= _nodes(step.get(word))
        started = _nodes(step.get(_START))
        if started <= down:
            kept.append(step)
        down -= started
    return kept


def _nodes(operand: object) -> set[str]:
    """Return the names of the nodes to which a performed step was done."""
    if operand is None:
        return set()
    return set(map(str, operand)) if isinstance(operand, list) else {str(operand)}
