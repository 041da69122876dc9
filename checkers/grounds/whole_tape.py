"""A6 whole-tape: The tape is whole.

The frames are numbered from 0 on without a hole, and so are the items of each; they arrived in this
order, and none was passed on before. The first one is older than the first registration in the
metadata log. The last one is younger than the end of healing, and no farther from the end of the
run, nor from the last read of metadata, than any two neighbours after healing; in a run that did
not come to its end, it is no older than the last record of the metadata log. Each connection has
one pair of parties, the items of a frame have one head, and each answer to a request that is always
on the tape has one.

Much is proven by a frame that is not there: no Fetch told the leader an epoch, no heartbeat arrived
for longer than a lease, no broker acknowledged an offset. A frame that is missing from the tape and
not from the wire would be such a proof against a correct cluster. So the tape has to prove that it
is whole, or every check that rests on it is unknown.

Times of arrival may go back from one number to the next: what waits behind a held frame is taken
when that is let go. Heartbeats and Fetches of metadata go on until the end of the run, and the
broker that answered the last read of metadata may have a lease that has to be on the tape. What is
on a disk may go on for longer than a recording. Connections and answers have the parties that they
must have (`grounds.tape_parties`).

Where ZooKeeper has the metadata, brokers register with it, so the first frame proves nothing there;
and nor does the last one unless brokers send each other MetadataHeartbeats, as else nothing need be
said between nodes for a while. The same goes for an ensemble of ZooKeeper's alone, and for nodes of
other systems.

A tape without any frame is the business of `whole-run`.

Meaning: Otherwise what no frame shows may have been sent all the same.
Case: a frame
Source: history/cluster_schema.py, WIRE
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.facts import Facts, facts_of
from fencepost.checkers.grounds.tape_parties import PARTY_COLUMNS, TapedParties
from fencepost.checkers.metadata.metadata_heartbeats import METADATA_HEARTBEAT
from fencepost.checkers.runner.tables import cluster_file, source_in
from fencepost.checkers.sources import Source
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest
from fencepost.history.run_directory import RunDirectory

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.ASSUMPTION,
    needs=("wire",),
)
NAME: Final = ENTRY.name
_COLUMNS: Final = ("frame", "item", "time_ns", "forwarded_ns")
_REGISTRATIONS: Final = ("RegisterBrokerRecord", "BrokerInfoRecord")
_S: Final = 1e9
_SLACK_NS: Final = 5_000_000_000
"""The clients and nodes of a busy machine may take that long to end."""
_STALL_NS: Final = 1_000_000_000
"""How much longer than its rhythm a tape may be silent while clients read: less than any lease."""


def whole_tape_of(run: RunDirectory, manifest: Manifest) -> CheckResult:
    """Judge the tape of a run."""
    try:
        wire = source_in(cluster_file(run, manifest, "wire"), "wire")
        log = None
        if "metadata_log" in manifest.tables:
            log = source_in(cluster_file(run, manifest, "metadata_log"), "metadata_log")
        read_ns = None
        if "describes" in manifest.tables:
            read_ns = _last_ns(source_in(cluster_file(run, manifest, "describes"), "describes"))
    except HarnessError as error:
        return CheckResult(check=NAME, validity=Validity.UNKNOWN, reason=str(error))
    return whole_tape(wire, log, facts_of(manifest), read_ns=read_ns)


def whole_tape(
    wire: Source, metadata_log: Source | None, facts: Facts, *, read_ns: int | None = None
) -> CheckResult:
    """Judge a tape and the metadata log of its run, None if that was not recorded.

    `read_ns`: when the last read of metadata was answered, None without any.
    """
    seen, parties = _Seen(beats=_by_controllers(facts)), TapedParties()
    wrong = (
        seen.gap(batch, facts) or parties.contradiction(batch)
        for batch in wire(tuple(dict.fromkeys((*_COLUMNS, *PARTY_COLUMNS))))
    )
    reason = next(filter(None, wrong), "")
    reason = reason or seen.ends(_log_span(metadata_log, facts), facts, read_ns)
    reason = reason or parties.unasked()
    return CheckResult(
        check=NAME,
        validity=Validity.UNKNOWN if reason else Validity.VALID,
        case_count=seen.frame + 1,
        reason=reason,
    )


def _by_controllers(facts: Facts) -> bool:
    """Return whether brokers register with controllers of Kafka's own, and send them heartbeats."""
    return bool(facts.controllers) and not (facts.on_zookeeper or facts.migrating)


@dataclass(slots=True)
class _Seen:
    """The tape up to some row."""

    frame: int = -1
    item: int = 0
    first_ns: int = -1
    last_ns: int = -1
    rhythm_ns: int = 0
    """The longest time between two frames behind one another since the end of healing."""
    beats: bool = True
    """Nodes have something to say to each other all the time."""

    def gap(self, batch: pa.RecordBatch, facts: Facts) -> str:
        """Go on to the end of a batch; return what is missing before it, or wrong in it."""
        if not batch.num_rows:
            return ""
        frame = np.append(self.frame, batch.column("frame").to_numpy())
        item = np.append(self.item, batch.column("item").to_numpy())
        time_ns = batch.column("time_ns").to_numpy()
        newest_ns = time_ns[0] if self.last_ns < 0 else self.last_ns
        before_ns = np.maximum.accumulate(np.append(newest_ns, time_ns[:-1]))
        step, following = np.diff(frame), np.diff(item)
        # A row that is there twice says nothing new, and nothing false.
        whole = ((step == 1) & (item[1:] == 0)) | ((step == 0) & np.isin(following, (0, 1)))
        if not whole.all():
            place = int(np.argmin(whole))
            return (
                f"behind frame {frame[place]}, item {item[place]}, comes frame "
                f"{frame[place + 1]}, item {item[place + 1]}: rows of the tape are missing or "
                "not in their order"
            )
        forwarded_ns = pc.fill_null(batch.column("forwarded_ns"), np.iinfo(np.int64).max).to_numpy()
        if np.any(forwarded_ns < time_ns):
            place = int(np.argmax(forwarded_ns < time_ns))
            return f"frame {frame[place + 1]} was passed on before it had arrived"
        if self.first_ns < 0:
            self.first_ns = int(time_ns[0])
        if not self.beats:
            self.beats = METADATA_HEARTBEAT in pc.unique(batch.column("api")).to_pylist()
        if facts.healed_ns is not None:
            late = before_ns >= facts.healed_ns
            waits_ns = (time_ns - before_ns)[late]
            self.rhythm_ns = max(self.rhythm_ns, int(waits_ns.max(initial=0)))
        self.frame, self.item = int(frame[-1]), int(item[-1])
        self.last_ns = max(self.last_ns, int(time_ns.max()))
        return ""

    def ends(self, log: "_LogSpan", facts: Facts, read_ns: int | None) -> str:
        """Return why the tape does not reach from the start to the end of the run, or nothing."""
        registered_ns = log.registered_ns
        if self.frame < 0 or not self.beats:
            return ""
        if _by_controllers(facts) and registered_ns is not None and self.first_ns > registered_ns:
            return (
                f"its first frame is of {self.first_ns / _S:.3f} s, and a broker had registered by "
                f"{registered_ns / _S:.3f} s"
            )
        last = f"its last frame is of {self.last_ns / _S:.3f} s"
        if facts.healed_ns is not None and self.last_ns < facts.healed_ns:
            return f"{last}, and healing went on until {facts.healed_ns / _S:.3f} s"
        if facts.end_ns is not None and facts.end_ns - self.last_ns > self.rhythm_ns + _SLACK_NS:
            return (
                f"{last}, and the run went on until {facts.end_ns / _S:.3f} s: no two frames were "
                f"so far apart before ({self.rhythm_ns / _S:.3f} s at most)"
            )
        if read_ns is not None and read_ns - self.last_ns > self.rhythm_ns + _STALL_NS:
            return (
                f"{last}, and a broker answered a read at {read_ns / _S:.3f} s: no two frames were "
                f"so far apart before ({self.rhythm_ns / _S:.3f} s at most)"
            )
        if facts.end_ns is None and log.last_ns is not None and self.last_ns < log.last_ns:
            return (
                f"{last}, and the metadata log goes on until {log.last_ns / _S:.3f} s: the "
                "recording did not come to its end"
            )
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _LogSpan:
    """The times between which a metadata log tells of a cluster with brokers; None: unknown."""

    registered_ns: int | None = None
    """By when the first registration had surely been decided."""
    last_ns: int | None = None
    """Before which its last record was surely not written."""


def _log_span(metadata_log: Source | None, facts: Facts) -> _LogSpan:
    if metadata_log is None:
        return _LogSpan()
    told = [_stamps(batch) for batch in metadata_log(("type", "snapshot", "timestamp_ms"))]
    registered = [first_ms for first_ms, _ in told if first_ms is not None]
    last = [last_ms for _, last_ms in told if last_ms is not None]
    return _LogSpan(
        registered_ns=facts.latest_ns(min(registered)) if registered else None,
        last_ns=facts.earliest_ns(max(last)) if last else None,
    )


def _last_ns(describes: Source) -> int | None:
    """Return when the last read of metadata was answered; None without any."""
    told = [pc.max(batch.column("return_ns")).as_py() for batch in describes(("return_ns",))]
    return max((one for one in told if one is not None), default=None)


def _stamps(batch: pa.RecordBatch) -> tuple[int | None, int | None]:
    """Return the first time of a registration and the last time of any record, if there are any."""
    own = batch.filter(pc.invert(batch.column("snapshot")))
    is_registration = pc.is_in(own.column("type"), pa.array(_REGISTRATIONS))
    registered = pc.min(own.column("timestamp_ms").filter(is_registration)).as_py()
    return registered, pc.max(own.column("timestamp_ms")).as_py()


CHECKS: Final[Iterable[CatalogueEntry]] = (ENTRY,)
