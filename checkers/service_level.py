"""The service that a run's clients got: what the head of every report says, as one value.

It is computed once, with the verdict (`checkers.service`), and stored in `verdict.json` under
`service_level`; the page, the terminal, `--json` and JUnit read it from there. Each part tells of
one *use*, which is a kind of operation: sends, writes and reads of objects, writes of metadata.

An *ask* is one operation. It waits from its call until its return; one whose end was never seen is
known to have waited at its call alone. It is *acknowledged* when it returns ok, or with a refusal
of what an object's state does not allow, which is an answer, too. An operation of unknown fate is
not.

A *silence* of a key is a stretch of time at every moment of which some ask of that key waits and
none is acknowledged: from an acknowledgement behind which another ask waits, or from the first
call after it, to the next acknowledgement, or until the last ask that waits has failed. Nobody
asked is no silence. One of less than `SILENCE_S_MIN` is latency, and is not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

SILENCE_S_MIN: Final = 1.0
"""A shorter silence is not counted, in seconds. Every ask that waits behind an acknowledgement is
a silence of some length: counting all of them would call a busy cluster unavailable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyLevel:
    """The time from call to acknowledgement, of `count` asks; refusals have none.

    Quantiles are upper bounds of buckets that are 1.1 % wide; the maximum is exact.
    """

    count: int
    p50_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultAmong:
    """A fault, by its row in `faults`."""

    index: int
    fault: str
    targets: tuple[str, ...]

    @property
    def label(self) -> str:
        """The label: `kill broker-1, broker-2`."""
        return " ".join(filter(None, (self.fault, ", ".join(self.targets))))


@dataclass(frozen=True, slots=True, kw_only=True)
class SilenceOf:
    """The silence of a key; times are seconds of the run."""

    key: str
    begin_s: float
    length_s: float
    faults: tuple[FaultAmong, ...] = ()
    """The faults that were in effect during it, that which was for longest first; a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultService:
    """The latency of asks that one fault may have concerned, by the index of the fault."""

    fault: int
    latency: LatencyLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class UseService:
    """The service that one use of the cluster got.

    A fault *reaches*, on each key that was asked for before it ended, from its effect to the first
    acknowledgement after its heal: the tail of a fault is its own. An ask that waited at any time
    of that is *during* the fault; an ask that waited in the reach of none is *outside*.
    """

    use: str
    """In the plural: `sends`, `writes`, `reads`, `metadata writes`."""
    acknowledged_count: int
    silence_count: int
    """The silences of `SILENCE_S_MIN` or more, of all keys."""
    unavailable_s: float
    """The time, s, in which at least one key had such a silence: that of several counts once."""
    longest: SilenceOf | None = None
    """The longest of them; None without any."""
    outside: LatencyLevel | None = None
    """None: no ask was acknowledged there."""
    during: LatencyLevel | None = None
    """During any fault."""
    by_kind: Mapping[str, LatencyLevel] = field(default_factory=dict)
    """During any fault of a kind that was asked for."""
    by_fault: tuple[FaultService, ...] = ()
    """Of the first few hundred faults during which something was acknowledged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossLevel:
    """The acknowledged records, or writes of znodes, that were lost."""

    subject: str
    """In the plural: `records`, `writes`."""
    acknowledged_count: int
    lost_count: int | None
    """Those allowed under the promises of the run included; None: the checks could not answer."""
    allowed_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceLevel:
    """The service of a run. What it has no operations for is not in it, rather than zero."""

    duration_s: float | None
    """From the start of the run to its recorded end; None: the end is not recorded."""
    loss: LossLevel | None
    """None: its clients do nothing that could be lost in this sense."""
    uses: tuple[UseService, ...]
    """That which the run is about first."""
    effective_faults: Mapping[str, int] = field(default_factory=dict)
    """The number of faults that took effect, by the kind that was asked for."""
    silence_s_min: float = SILENCE_S_MIN
