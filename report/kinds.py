"""The kinds of fault that a run was asked for, as a report shows them: a row each, or a line."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fencepost.checkers.grounds.fault_kinds import FaultKind, kinds_in
from fencepost.checkers.verdict import Verdict
from fencepost.history.manifest import Manifest
from fencepost.report.notation import integer, one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRow:
    """One kind, and what the scenario says of it."""

    kind: FaultKind
    demanded: bool
    served: bool
    """True if clients have to be served while it is in effect."""


def kind_rows(verdict: Verdict | None, manifest: Manifest | None) -> tuple[KindRow, ...]:
    """Return the kinds in the order in which they were asked for."""
    demanded = manifest.required_faults if manifest else ()
    served = manifest.served_faults if manifest else None
    return tuple(
        KindRow(
            kind=kind, demanded=kind.kind in demanded, served=served is None or kind.kind in served
        )
        for kind in (kinds_in(verdict) if verdict else ())
    )


def kinds_line(verdict: Verdict) -> str:
    """Return `kill 2, delay 1 of 2, pause 0`: how many took effect, of how many if not all did."""
    return ", ".join(map(_effects, kinds_in(verdict)))


def without_effect(verdict: Verdict) -> tuple[str, ...]:
    """Return the kinds that were asked for and never took effect."""
    return tuple(one_line(one.kind) for one in kinds_in(verdict) if not one.effect_count)


def kind_properties(verdict: Verdict) -> Mapping[str, str]:
    """Return properties for a build server: `fault.kill.effect` and so on."""
    return dict(pair for kind in kinds_in(verdict) for pair in _properties(kind))


def _effects(one: FaultKind) -> str:
    name, begun, effect = one_line(one.kind), integer(one.begun_count), integer(one.effect_count)
    return f"{name} {effect}" if begun == effect else f"{name} {effect} of {begun}"


def _properties(kind: FaultKind) -> Iterator[tuple[str, str]]:
    name = f"fault.{kind.kind}"
    yield f"{name}.begun", str(kind.begun_count)
    yield f"{name}.effect", str(kind.effect_count)
    if kind.acknowledged_sends_count is not None:
        yield f"{name}.acknowledged_sends", str(kind.acknowledged_sends_count)
    if kind.reads_count is not None:
        yield f"{name}.reads", str(kind.reads_count)
