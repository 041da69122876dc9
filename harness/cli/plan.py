"""`fencepost run --dry-run`: the plan of a run, as people and as programs read it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import islice
from pathlib import Path
from typing import Any, Final

import click
import yaml

from fencepost.clusters.systems import system_of
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.cli.options import emit_json
from fencepost.harness.prepare.abilities import needs
from fencepost.harness.progress import Progress, terminal_progress
from fencepost.harness.run.plan import RunPlan, planned, projected
from fencepost.harness.scenario.options import RunOptions
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.trials.storms import printed_schedules
from fencepost.nemesis.play import step_data
from fencepost.nemesis.schedules.printed import printed_mix
from fencepost.nemesis.words import duration_text
from fencepost.workloads.registry import kind_of

_COLUMNS: Final = 74
"""YAML ends a line only after the word that passes its width, and few are longer than 26."""
_DRAWN: Final = 100
_AS_IF: Final = (
    "as drawn if each fault is over once it is healed and the first leaders go on leading; a "
    "replica; a run draws on from what its cluster does"
)


def show_plans(
    scenario: Scenario, options: Callable[[Progress], Iterable[RunOptions]], *, as_json: bool
) -> int:
    """Print the plan of each run. UsageError or HarnessError for what a run would refuse."""
    with terminal_progress() as progress:
        plans = [planned(scenario, one, progress.say) for one in options(progress)]
    found = [plan_data(plan) for plan in plans]
    if as_json:
        emit_json(found)
    else:
        # Lists and steps of plain words are a line each, as scenarios have them.
        dumped = yaml.safe_dump_all(
            found, sort_keys=False, allow_unicode=True, width=_COLUMNS, default_flow_style=None
        )
        click.echo(dumped, nl=False)
    return 0


def plan_data(plan: RunPlan) -> dict[str, Any]:
    """Return the plan, in the words of scenarios and flags."""
    scenario, options, expected = plan.scenario, plan.options, plan.expectation
    found: dict[str, Any] = {
        "scenario": scenario.name,
        "title": scenario.title,
        "seed": options.seed,
        "repeat": options.command,
        "results": options.results / scenario.name,
        "cluster": _cluster(plan),
        "topics": [_topic(topic) for topic in scenario.topics],
        "workload": [{"kind": kind_of(spec).word, **_stated(spec)} for spec in scenario.workloads],
        "time_limit": duration_text(scenario.time_limit_s),
        "recovery_limit": duration_text(scenario.recovery_limit_s),
        **_faults(plan),
        "needs": needs(scenario, plan.there),
        "require": scenario.require.as_data(),
        "expect": None
        if expected is None
        else {
            "verdict": expected.validity,
            "anomalies": expected.anomalies,
            "known": expected.known,
        },
    }
    return {key: _plain(value) for key, value in found.items() if value is not None}


def _cluster(plan: RunPlan) -> dict[str, object]:
    spec, options = plan.scenario.cluster, plan.options
    roles = spec.node_roles
    nodes = {role: roles.among(spec.nodes, role) for role in roles.names(spec.nodes)}
    of_options = {
        "host": options.host,
        "image": options.image,
        "inventory": options.inventory,
        "proxy": options.wire,
        "clients_through_proxy": options.wire and plan.scenario.wires_clients,
        "without_rules": options.without_rules,
    }
    given = {key: value for key, value in of_options.items() if value not in (None, ())}
    made = {"system": system_of(spec).name, "make": str(options.cluster)}
    found = {**made, "nodes": nodes, **given, **_stated(spec)}
    if plan.level is not None:  # it runs no release of Kafka
        del found["release"]
        found |= {"metadata_version": plan.level, "expected_as": plan.release}
    return found


def _topic(topic: TopicSpec) -> dict[str, object]:
    """Return the topic as a scenario writes it."""
    found = _stated(topic)
    if topic.assignment is None:
        return found
    replicas = {"replicas": found["assignment"]}
    counted = ("partitions", "replication_factor", "assignment")
    return {key: found[key] for key in found if key not in counted} | replicas


def _faults(plan: RunPlan) -> dict[str, object]:
    """Return the faults of the plan: the trial, the steps of its play, or what its mix draws."""
    scenario = plan.scenario
    if scenario.trial is not None:
        shown = printed_schedules(scenario.trial, mix=scenario.mix, cluster=scenario.cluster)
        blocks = {name: _Block(text) for name, text in shown.items()}
        return {"trial": scenario.trial, "schedules": blocks}
    if scenario.play is not None:
        return {"play": [step_data(step) for step in scenario.play]}
    if scenario.mix is None:
        return {"faults": "none"}
    spec = scenario.cluster
    drawn = projected(scenario, plan.options.seed)
    steps = [{"at": duration_text(at_s), **step_data(step)} for at_s, step in islice(drawn, _DRAWN)]
    further = "" if next(drawn, None) is None else f"; these are the first {_DRAWN} steps"
    return {
        "nemesis": scenario.mix,
        "drawn": {"note": f"{_AS_IF}{further}", "steps": steps},
        "schedule": _Block(printed_mix(scenario.mix, nodes=spec.nodes, roles=spec.node_roles)),
    }


class _Block(str):
    """Text that YAML shows line by line."""

    __slots__ = ()


yaml.SafeDumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def _stated(spec: Any) -> dict[str, object]:
    """Return the fields of a spec that say something."""
    found = {field.name: getattr(spec, field.name) for field in fields(spec)}
    return {name: value for name, value in found.items() if value not in (None, (), {})}


def _plain(value: object) -> Any:
    """Return the value as YAML and JSON have it."""
    match value:
        case Enum() | Path():
            return str(value)
        case Mapping():
            return {str(key): _plain(one) for key, one in value.items()}
        case tuple() | list():
            return [_plain(one) for one in value]
        case _Block():
            return value
        case str():
            return str(value)
        case _ if is_dataclass(value):
            return _plain(_stated(value))
        case _:
            return value
