"""The bodies of `fencepost simulate` and `fencepost selftest`."""

import re
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from rich.table import Table

from fencepost.clusters.provision.java import Java, find_java
from fencepost.clusters.reference.nodes.rules import ProtocolRule
from fencepost.clusters.reference_zookeeper.system import SYSTEM as ON_ZOOKEEPER
from fencepost.harness.cli.options import emit_json
from fencepost.harness.cli.tables import console
from fencepost.harness.prepare.reference import rules_of, rules_without
from fencepost.harness.progress import Progress, terminal_progress
from fencepost.harness.scenario.composed import chosen_texts
from fencepost.harness.scenario.flags import flag_overrides
from fencepost.harness.scenario.on_other_system import SYSTEM_KEY
from fencepost.harness.scenario.scenario import load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.trials.generations import GENERATIONS, KRAFT, Generation
from fencepost.harness.trials.plan import TrialPlan, drawn_plan, plan_of
from fencepost.harness.trials.storms import printed_schedules
from fencepost.harness.trials.zk_plan import drawn_zk_plan
from fencepost.history.failure import UsageError
from fencepost.nemesis.words import did_you_mean

if TYPE_CHECKING:
    from fencepost.harness.run.spark_start import SparkStart
    from fencepost.harness.trials.selftest import Detection
    from fencepost.harness.trials.series import Plans, TrialTally
    from fencepost.harness.trials.trial import TrialResult

_STORM: Final = "storm"
"""The word in the place of a scenario: every seed draws its own cluster and faults."""
_SHOWN_MAX: Final = 3
_FAILED: Final = 255
_APART: Final = re.compile(r"[^\w.]+")
_EXCUSED: Final = "excused"
"""The word of `--keep` for trials that are no evidence."""


def simulate(
    scenario: str,
    *,
    seeds: int,
    first: int,
    system: str | None,
    metadata_version: str | None,
    chosen: tuple[str, ...],
    off: tuple[str, ...],
    until: int,
    store_max: int,
    keep: tuple[str, ...],
    dry_run: bool,
    results: Path,
    spark_master: str,
    as_json: bool,
) -> int:
    """Carry SCENARIO out in virtual time with seed after seed, an oracle watching every step."""
    plans = plans_of(scenario, system, metadata_version, chosen)
    if dry_run:
        shown = [plans(seed) for seed in range(first, first + seeds)]
        return _show_schedules(shown, as_json=as_json)
    rules = rules_without(off, rules_of(plans(first).cluster))
    java = find_java()
    from fencepost.harness.trials.series import TrialSeries, TrialTally, enough

    with terminal_progress() as progress:
        session = _spark(java, spark_master, progress).session()
        series = TrialSeries(session=session, plans=plans, rules=rules, first=first, count=seeds)
        tally = TrialTally()
        for tally in series.run(until=enough(until)):
            progress.say(_line(tally, seeds))
        repeat = _repeat(scenario, system, metadata_version, off, chosen)
        stored = []
        kept = tally.excused[:store_max] if _EXCUSED in keep else []
        for one in (*_worth_storing(tally.suspicious, store_max), *kept):
            progress.say(f"storing seed {one.seed}")
            plan = plans(one.seed)
            stored.append(_store(plan, off=off, scenario=scenario, chosen=chosen, results=results))
    if as_json:
        emit_json(_tally_json(tally) | {"stored": [str(root) for root in stored]})
    else:
        _say_tally(tally, repeat)
        for root in stored:
            console().print(f"stored: {root} (fencepost check {root})", soft_wrap=True)
    if tally.suspicious:
        return 1
    return _FAILED if tally.crashes else 0


def selftest(
    *,
    system: str,
    seeds: int,
    clean: int,
    hits: int,
    tries: int,
    chosen: tuple[str, ...],
    page: Path | None,
    results: Path,
    spark_master: str,
    as_json: bool,
) -> int:
    """Switch each rule of the reference cluster off, and see that a check finds it out."""
    generation = GENERATIONS[system]
    subjects = _subjects(generation, chosen)
    from fencepost.checkers.runner.session import is_local

    if not is_local(spark_master):
        raise UsageError("selftest records runs on this machine: pass a local --spark-master")
    java = find_java()
    from fencepost.harness.trials.selftest import clean_series, detect
    from fencepost.harness.trials.selftest_page import selftest_page
    from fencepost.harness.trials.series import TrialTally

    found: list[Detection] = []
    with terminal_progress() as progress:
        session = _spark(java, spark_master, progress).session()
        for rule in subjects:
            root = results.absolute() / "selftest"
            found.append(
                detect(rule, session=session, seeds=seeds, hits=hits, tries=tries, root=root)
            )
            progress.say(_detection_line(found[-1]))
        tally = TrialTally()
        if clean:
            tally = clean_series(
                generation,
                session=session,
                seeds=clean,
                shown=lambda now: progress.say(_line(now, clean)),
            )
    if page is not None:
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        page.write_text(selftest_page(found, before=before), encoding="utf-8")
    if as_json:
        emit_json({"rules": [_detection_json(d) for d in found], "clean": _tally_json(tally)})
    else:
        console().print(_matrix(found))
        _say_tally(tally, _repeat(_STORM, None if generation is KRAFT else system, None, ()))
    accused = bool(tally.suspicious or tally.crashes)
    return 0 if all(one.detected for one in found) and not accused else 1


def _subjects(generation: Generation, chosen: Sequence[str]) -> list[ProtocolRule]:
    """Return the rules to try; raise UsageError for one that the generation does not have."""
    known = [rule.name for rule in generation.tried]
    for name in chosen:
        if name in known:
            continue
        unseen = [rule.unseen for rule in generation.rules_of_its_own if rule.name == name]
        if unseen:
            raise UsageError(f"--rule {name}: no check can detect its absence: {unseen[0]}")
        others = [one.system for one in GENERATIONS.values() if name in _names(one)]
        hint = f"--system {others[0]} has it" if others else did_you_mean(name, known)
        raise UsageError(f"--rule {name}: {generation.system} has no such rule; {hint}")
    return [rule for rule in generation.tried if not chosen or rule.name in chosen]


def _names(generation: Generation) -> frozenset[str]:
    return frozenset(rule.name for rule in generation.tried)


def _spark(java: Java, master: str, progress: Progress) -> "SparkStart":
    from fencepost.harness.run.spark_start import SparkStart

    return SparkStart(java, master=master, say=progress.say)


def _show_schedules(plans: Sequence[TrialPlan], *, as_json: bool) -> int:
    """Print each schedule of these plans once, with the number of the plans that have it."""
    found = Counter(
        item
        for plan in plans
        for item in printed_schedules(plan, mix=plan.mix, cluster=plan.cluster).items()
    )
    if as_json:
        emit_json(
            [
                {"schedule": name, "seeds": count, "printed": text}
                for (name, text), count in sorted(found.items())
            ]
        )
        return 0
    for (name, text), count in sorted(found.items()):
        click.echo(f"# {name}: {count} of {len(plans)} seeds\n{text}\n")
    return 0


def plans_of(
    scenario: str, system: str | None, metadata_version: str | None, chosen: Sequence[str]
) -> "Plans":
    """Return the plans of trials. Raises UsageError for what cannot be."""
    if scenario == _STORM:
        if chosen:
            raise UsageError(
                "--set: a storm draws its own cluster and faults, and has no parameters"
            )
        return _storms(system, metadata_version)
    overrides = flag_overrides({"set": chosen})
    if system is not None:
        overrides.append((SYSTEM_KEY, system, "--system"))
    if metadata_version is not None:
        place = ("cluster", "metadata_version")
        overrides.append((place, metadata_version, "--metadata-version"))
    plan = plan_of(load_scenario(find_scenario(scenario), overrides), seed=1)

    def planned(seed: int) -> TrialPlan:
        return replace(plan, seed=seed)

    return planned


def _storms(system: str | None, metadata_version: str | None) -> "Plans":
    if system == ON_ZOOKEEPER.name:
        if metadata_version is not None:
            raise UsageError(f"--metadata-version: a cluster of {system} has none; leave it out")
        return drawn_zk_plan
    levels = (2, 3) if metadata_version is None else (int(metadata_version),)
    return lambda seed: drawn_plan(seed, levels=levels)


def _worth_storing(suspicious: "Sequence[TrialResult]", count: int) -> "list[TrialResult]":
    """Return the first `count` trials of each anomaly, by the first finding of each trial."""
    kept: dict[str, list[TrialResult]] = {}
    for one in suspicious:
        kept.setdefault(one.findings[0].anomaly, []).append(one)
    wanted = {one.seed for several in kept.values() for one in several[:count]}
    return [one for one in suspicious if one.seed in wanted]


def _store(
    plan: TrialPlan, *, off: Sequence[str], scenario: str, chosen: Sequence[str], results: Path
) -> Path:
    """Store the trial and return its directory: the same for the same seed, rules, parameters."""
    from fencepost.harness.trials.store import store_trial

    stem = Path(scenario).stem
    values = (f"set-{_APART.sub('-', one)}" for one in chosen)
    name = "-".join((stem, f"seed-{plan.seed}", *values, *(f"without-{one}" for one in off)))
    root = results / "trials" / name
    parameters = chosen_texts(chosen)
    store_trial(plan, without_rules=off, root=root, name=stem, parameters=parameters)
    return root


def _repeat(
    scenario: str,
    system: str | None,
    metadata_version: str | None,
    off: Sequence[str],
    chosen: Sequence[str] = (),
) -> str:
    words = ["fencepost", "simulate", scenario]
    if system is not None:
        words += ["--system", system]
    if metadata_version is not None:
        words += ["--metadata-version", metadata_version]
    for one in chosen:
        words += ["--set", one]
    for name in off:
        words += ["--without-rule", name]
    return shlex.join(words)


def _line(tally: "TrialTally", count: int) -> str:
    bad = f" · found {sum(tally.found.values())}" if tally.found else ""
    crashed = f" · crashed {len(tally.crashes)}" if tally.crashes else ""
    return (
        f"{tally.trial_count:,} of {count:,} seeds · {tally.event_count:,} events · "
        f"{tally.virtual_s:,.0f} virtual s · excused {len(tally.excused):,}{bad}{crashed}"
    )


def _say_tally(tally: "TrialTally", repeat: str) -> None:
    out = console()
    for result in tally.suspicious[:_SHOWN_MAX]:
        out.print(f"seed {result.seed} ({result.storm}): {result.findings[0]}", style="red")
    for result in tally.crashes[:_SHOWN_MAX]:
        out.print(f"seed {result.seed} ({result.storm}) failed: {result.crash}", style="red")
    if not tally.trial_count:
        return
    for result in tally.excused[:_SHOWN_MAX]:
        out.print(f"excused: seed {result.seed} ({result.storm}): {'; '.join(result.excused)}")
    if more := [str(one.seed) for one in tally.excused[_SHOWN_MAX:]]:
        out.print(f"excused likewise: seeds {', '.join(more)}")
    found = ", ".join(f"{name} ({count})" for name, count in sorted(tally.found.items()))
    out.print(
        f"{tally.trial_count:,} seeds: {tally.clean_count:,} clean, {len(tally.excused):,} "
        f"excused (no evidence), {len(tally.suspicious):,} found something"
        f"{f': {found}' if found else ''}, {len(tally.crashes):,} failed; "
        f"{tally.event_count / max(tally.cpu_s, 1e-9):,.0f} events and "
        f"{tally.virtual_s / max(tally.cpu_s, 1e-9):,.0f} virtual s a core-second"
    )
    for result in (*tally.suspicious, *tally.crashes)[:1]:
        out.print(f"repeat: {repeat} --first {result.seed} --seeds 1")


def _detection_line(one: "Detection") -> str:
    seeds = one.seeds_to_detection
    oracle = f"the oracle in {len(one.hits)} of {one.trial_count:,} seeds" + (
        "" if seeds is None else f", median {seeds:g} seeds to detection"
    )
    if one.found is None:
        return f"{one.rule.name}: NOT found by a check in {len(one.attempts)} trials; {oracle}"
    names = ", ".join(one.found.found)
    example = one.found.example
    return f"{one.rule.name}: {names} ({example.play}, seed {example.seed}); {oracle}"


def _matrix(found: "Sequence[Detection]") -> Table:
    table = Table(title="rules switched off, and what found them out", title_justify="left")
    for name in ("rule", "checks", "play", "seed", "tried", "oracle: found in", "median seeds"):
        table.add_column(name, overflow="fold")
    for one in found:
        seeds, attempt = one.seeds_to_detection, one.found
        table.add_row(
            one.rule.name,
            "none" if attempt is None else ", ".join(list(attempt.found)[:3]),
            "" if attempt is None else attempt.example.play,
            "" if attempt is None else str(attempt.example.seed),
            str(len(one.attempts)),
            f"{len(one.hits)}/{one.trial_count}",
            "never" if seeds is None else f"{seeds:g}",
            style="" if one.detected else "red",
        )
    return table


def _detection_json(one: "Detection") -> dict[str, Any]:
    rule: ProtocolRule = one.rule
    return {
        "rule": rule.name,
        "source": rule.source,
        "seeds": one.trial_count,
        "hits": list(one.hits),
        "seeds_to_detection": one.seeds_to_detection,
        "anomalies": one.anomalies,
        "crashes": one.crash_count,
        "core_s": round(one.cpu_s, 3),
        "detected": one.detected,
        "attempts": [
            {
                "play": attempt.example.play,
                "seed": attempt.example.seed,
                "storm": attempt.storm,
                "oracle": attempt.oracle,
                "excused": attempt.excused,
                "crash": attempt.crash,
                "checks": dict(attempt.found),
            }
            for attempt in one.attempts
        ],
    }


def _tally_json(tally: "TrialTally") -> dict[str, Any]:
    return {
        "seeds": tally.trial_count,
        "clean": tally.clean_count,
        "excused": len(tally.excused),
        "excused_seeds": [
            {"seed": one.seed, "storm": one.storm, "reasons": list(one.excused)}
            for one in tally.excused
        ],
        "found": tally.found,
        "events": tally.event_count,
        "virtual_s": round(tally.virtual_s, 3),
        "core_s": round(tally.cpu_s, 3),
        "suspicious": [
            {"seed": one.seed, "storm": one.storm, "findings": [str(f) for f in one.findings]}
            for one in tally.suspicious
        ],
        "crashes": [{"seed": one.seed, "crash": one.crash} for one in tally.crashes],
    }
