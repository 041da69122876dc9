"""The service of a run in words and as properties: the same on the page, the terminal, in JUnit."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from fencepost.checkers.service_level import (
    LatencyLevel,
    LossLevel,
    ServiceLevel,
    SilenceOf,
    UseService,
)
from fencepost.report.notation import counted, integer, length, moment, one_line

_NS: Final = 1e9
_NS_A_MS: Final = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFact:
    """A label, its value, and what should not be overlooked about it."""

    label: str
    value: str
    remark: str = ""


def service_facts(level: ServiceLevel) -> Iterator[ServiceFact]:
    """Yield the facts of the head, in the order in which they are asked for."""
    if level.loss is not None:
        yield _loss(level.loss)
    for use in level.uses:
        # Reads of the same objects tell no more than their latency; a load beside them, nothing.
        yield from _silence(use, level) if use is level.uses[0] else ()
        yield from _latencies(use) if use is level.uses[0] or use.use == "reads" else ()


def fault_latency(level: ServiceLevel | None, fault: int) -> LatencyLevel | None:
    """Return the latency during a fault, of what the run is about; None if it is not known."""
    each = level.uses[0].by_fault if level and level.uses else ()
    return next((one.latency for one in each if one.fault == fault), None)


def service_rows(level: ServiceLevel) -> Iterator[tuple[str, str, LatencyLevel]]:
    """Yield the latency of each use outside and during faults, and during each kind of fault."""
    for use in level.uses:
        told = {"outside faults": use.outside, "during any fault": use.during}
        told |= {f"during {kind}": latency for kind, latency in use.by_kind.items()}
        yield from ((use.use, where, one) for where, one in told.items() if one is not None)


def service_lines(level: ServiceLevel) -> Iterator[str]:
    """Yield the same in lines for a terminal."""
    if level.loss is not None:
        fact = _loss(level.loss)
        yield f"{fact.value} {fact.label}{f' ({fact.remark})' if fact.remark else ''}"
    for use in level.uses:
        if use.longest is not None:
            yield (f"{use.use}: longest silence {_longest(use.longest)}; {_in_all(use, level)}")
        elif use is level.uses[0]:
            yield f"{use.use}: no silence of {length(level.silence_s_min * _NS)} or more"
        told = [
            f"{_quantiles(latency)} {where}"
            for where, latency in (("outside faults", use.outside), ("during them", use.during))
            if latency is not None
        ]
        if told:
            yield f"{use.use}: latency {'; '.join(told)}"


def service_properties(level: ServiceLevel) -> Mapping[str, str]:
    """Return properties for a build server: `service.sends.longest_silence_s` and so on."""
    return dict(_properties(level))


def service_json(level: ServiceLevel) -> dict[str, Any]:
    """Return it as JSON data, without what each single fault did."""
    told = asdict(level)
    told["uses"] = [
        {name: value for name, value in use.items() if name != "by_fault"} for use in told["uses"]
    ]
    return told


def _properties(level: ServiceLevel) -> Iterator[tuple[str, str]]:
    if level.duration_s is not None:
        yield "duration_s", f"{level.duration_s:.3f}"
    if (loss := level.loss) is not None:
        lost = "not known" if loss.lost_count is None else str(loss.lost_count)
        yield f"service.{loss.subject}.acknowledged", str(loss.acknowledged_count)
        yield f"service.{loss.subject}.lost", lost
    for use in level.uses:
        name = f"service.{use.use.replace(' ', '_')}"
        yield f"{name}.unavailable_s", f"{use.unavailable_s:.3f}"
        if use.longest is not None:
            yield f"{name}.longest_silence_s", f"{use.longest.length_s:.3f}"
            yield f"{name}.longest_silence", _longest(use.longest)
        for where, latency in (("outside", use.outside), ("during", use.during)):
            if latency is not None:
                for quantile in ("p50_ms", "p99_ms", "max_ms"):
                    yield f"{name}.{where}_{quantile}", f"{getattr(latency, quantile):.3f}"


def _loss(loss: LossLevel) -> ServiceFact:
    acknowledged = integer(loss.acknowledged_count)
    label = f"acknowledged {one_line(loss.subject)} lost"
    if loss.lost_count is None:
        words = "the checks that find losses could not answer"
        return ServiceFact(label=label, value=f"? of {acknowledged}", remark=words)
    remark = f"{integer(loss.allowed_count)} allowed here" if loss.allowed_count else ""
    return ServiceFact(
        label=label, value=f"{integer(loss.lost_count)} of {acknowledged}", remark=remark
    )


def _silence(use: UseService, level: ServiceLevel) -> Iterator[ServiceFact]:
    least = length(level.silence_s_min * _NS)
    if use.longest is None:
        yield ServiceFact(
            label="longest silence", value=f"under {least}", remark=f"{use.use}, of any key"
        )
        return
    yield ServiceFact(
        label="longest silence",
        value=length(use.longest.length_s * _NS),
        remark=_where(use.longest),
    )
    yield ServiceFact(
        label="unavailable in all",
        value=length(use.unavailable_s * _NS),
        remark=f"{counted(use.silence_count, 'silence')} of {least} or more, of any key",
    )


def _latencies(use: UseService) -> Iterator[ServiceFact]:
    for where, latency, remark in (
        ("outside faults", use.outside, ""),
        ("during faults", use.during, "until the next acknowledgement after the heal"),
    ):
        if latency is not None:
            yield ServiceFact(
                label=f"{use.use} {where}",
                value=f"p99 {length(latency.p99_ms * _NS_A_MS)}",
                remark=f"p50 {length(latency.p50_ms * _NS_A_MS)}, "
                f"at most {length(latency.max_ms * _NS_A_MS)}{f'; {remark}' if remark else ''}",
            )


def _in_all(use: UseService, level: ServiceLevel) -> str:
    silences = counted(use.silence_count, "silence")
    least = length(level.silence_s_min * _NS)
    return f"unavailable {length(use.unavailable_s * _NS)} in all ({silences} of {least} or more)"


def _longest(one: SilenceOf) -> str:
    return f"{length(one.length_s * _NS)}, {_where(one)}"


def _where(one: SilenceOf) -> str:
    """Return `orders-4 from 12.001 s on, kill broker-1 and 2 more`."""
    among = "outside faults"
    if one.faults:
        more = len(one.faults) - 1
        among = f"{one_line(one.faults[0].label)}{f' and {more} more' if more else ''}"
    return f"{one_line(one.key)} from {moment(round(one.begin_s * _NS))} on, {among}"


def _quantiles(latency: LatencyLevel) -> str:
    told = {"p50": latency.p50_ms, "p99": latency.p99_ms, "at most": latency.max_ms}
    return ", ".join(f"{name} {length(ms * _NS_A_MS)}" for name, ms in told.items())
