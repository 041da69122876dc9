"""The top of a page: the verdict, what it is about, and the command that repeats the run."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from fencepost.history.manifest import Manifest
from fencepost.history.operation import F, Outcome
from fencepost.history.run_directory import RunDirectory
from fencepost.report.functions import OF_ZNODES
from fencepost.report.headline import Headline, headline_of
from fencepost.report.nemesis_work import idle_words
from fencepost.report.notation import counted, integer, length, utc
from fencepost.report.reading import Reading
from fencepost.report.service import service_facts
from fencepost.report.tally import RunTally

_FINAL: Final = ("final-read",)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadFact:
    """A label and its value; `remark` says what should not be overlooked about it."""

    label: str
    value: str
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The facts at the top of the page, seen without scrolling."""

    headline: Headline
    title: str
    identity: tuple[HeadFact, ...]
    service: tuple[HeadFact, ...]
    """What is asked first: the losses, the longest silence, the latencies, the faults."""
    figures: tuple[HeadFact, ...]
    command: str
    """The command that repeats the run; empty if the manifest is lost."""
    failure: str
    """The reason why the run failed although it has a verdict, or empty."""


def head_of(run: RunDirectory, reading: Reading) -> Head:
    """Return the head of a run in any state."""
    manifest = reading.manifest
    headline = headline_of(reading.verdict, manifest=manifest)
    failure = manifest.failure if manifest and reading.verdict else None
    return Head(
        headline=headline,
        title=(manifest.title or manifest.scenario) if manifest else run.root.name,
        identity=tuple(identity_facts(manifest)) if manifest else (),
        service=tuple(_service(reading)),
        figures=tuple(_figures(reading)),
        command=manifest.command if manifest else "",
        failure=failure or "",
    )


def identity_facts(manifest: Manifest) -> Iterator[HeadFact]:
    """Yield what the run is: its scenario, what it ran on, its seed, when and for how long."""
    yield HeadFact(label="Scenario", value=manifest.scenario)
    yield HeadFact(label="System", value=manifest.tested["system"])
    yield HeadFact(label="Cluster", value=manifest.tested["cluster"])
    yield HeadFact(label="Release", value=manifest.release)
    yield HeadFact(label="Host", value=manifest.tested["host"])
    yield HeadFact(label="Seed", value=str(manifest.seed))
    if manifest.parameters:
        yield HeadFact(label="Parameters", value=manifest.parameter_words)
    yield HeadFact(label="Started", value=utc(manifest.started_at))
    yield HeadFact(
        label="Duration",
        value=length(manifest.end_ns) if manifest.end_ns is not None else "end not recorded",
    )


def _service(reading: Reading) -> Iterator[HeadFact]:
    level = reading.verdict.service_level if reading.verdict else None
    for told in service_facts(level) if level is not None else ():
        yield HeadFact(label=told.label, value=told.value, remark=told.remark)
    if reading.spans:
        idle = sum(span.effect_ns is None for span in reading.spans)
        kinds = level.effective_faults if level is not None else {}
        named = ", ".join(f"{kind} {integer(count)}" for kind, count in kinds.items())
        without = f"{integer(idle)} without effect" if idle else ""
        yield HeadFact(
            label="faults with effect",
            value=integer(len(reading.spans) - idle),
            remark="; ".join(filter(None, (named, without))),
        )


def _figures(reading: Reading) -> Iterator[HeadFact]:
    tally = reading.tally
    if not tally.operation_count:
        return
    if reading.functions == OF_ZNODES:
        yield from _of_znodes(tally)
    else:
        yield from _of_records(tally)
    work = None if reading.manifest is None else reading.manifest.nemesis
    if work is not None:
        yield HeadFact(
            label="faults a minute",
            value=f"{work.faults_a_minute:.1f}",
            remark=idle_words(work),
        )


def _of_records(tally: RunTally) -> Iterator[HeadFact]:
    lost_sight = tally.counts[F.SEND, Outcome.INFO]
    yield HeadFact(
        label="sends acknowledged",
        value=integer(tally.counts[F.SEND, Outcome.OK]),
        remark=f"{integer(lost_sight)} of unknown fate" if lost_sight else "",
    )
    yield HeadFact(
        label="records polled",
        value=integer(tally.polled_records),
        remark=f"by {counted(tally.counts[F.POLL, Outcome.OK], 'ok poll')}",
    )
    reads = tally.counts[F.FINAL_READ, Outcome.OK]
    incomplete = sum(tally.counts[F.FINAL_READ, outcome] for outcome in Outcome) - reads
    yield HeadFact(
        label="keys read to the end",
        value=integer(reads),
        remark=f"{integer(incomplete)} not to the end" if incomplete else "",
    )


def _of_znodes(tally: RunTally) -> Iterator[HeadFact]:
    lost_sight = tally.count(OF_ZNODES.writes, Outcome.INFO)
    yield HeadFact(
        label="writes acknowledged",
        value=integer(tally.count(OF_ZNODES.writes, Outcome.OK)),
        remark=f"{integer(lost_sight)} of unknown fate" if lost_sight else "",
    )
    for label, fs in (("reads answered", OF_ZNODES.reads), ("final reads answered", _FINAL)):
        silent = sum(tally.count(fs, outcome) for outcome in (Outcome.FAIL, Outcome.INFO))
        yield HeadFact(
            label=label,
            value=integer(tally.count(fs, Outcome.OK)),
            remark=f"{integer(silent)} not answered" if silent else "",
        )
