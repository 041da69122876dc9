"""Small run directories for the tests of the report: a made-up history with known contents.

A `RunSpec` says what happened; `write_run` writes it as the recorder and the checkers would. The
operations are drawn from a seed, with stalls where faults are, so that a page of them looks like
one of a real run.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.checkers.anomaly import ANOMALIES, Anomaly
from fencepost.checkers.catalogue import CATALOGUE
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import CheckResult, Validity, Verdict, write_verdict
from fencepost.history.manifest import Manifest, Promises, RunState, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, OPERATIONS, RECORD_BUCKET_COUNT, RECORDS, SAMPLES

SECOND = 1_000_000_000
NODES = ("controller-1", "broker-1", "broker-2", "broker-3")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault by times in seconds; `effect` None took no effect, `end` None never healed."""

    kind: str
    targets: tuple[str, ...]
    begin: float
    effect: float | None
    end: float | None
    evidence: str = "pid 4711 is gone"
    heal_evidence: str = "registered again, unfenced"


BROKEN = (
    Fault(kind="kill", targets=("broker-1",), begin=0.5, effect=0.6, end=8.4),
    Fault(kind="pause", targets=("broker-2",), begin=10, effect=10.1, end=14.5),
    Fault(kind="kill", targets=("controller-1",), begin=12, effect=12.1, end=16),
    Fault(kind="partition", targets=("broker-1", "broker-2"), begin=22, effect=22.4, end=26),
)


def result(
    check: str,
    validity: Validity = Validity.VALID,
    *,
    reason: str = "",
    count: int = 0,
    allowed: int = 0,
    examples: Sequence[Anomaly] = (),
) -> CheckResult:
    """One check's answer, with a figure."""
    return CheckResult(
        check=check,
        validity=validity,
        case_count=0 if validity is Validity.NOT_JUDGED else 12,
        reason=reason,
        anomaly_count=count,
        allowed_count=allowed,
        examples=tuple(examples),
        figures={"keys_count": 3},
        seconds=0.25,
    )


def verdict_with(*others: CheckResult) -> Verdict:
    """The whole catalogue valid, but for these."""
    by_name = {other.check: other for other in others}
    return Verdict.of(by_name.get(entry.name) or result(entry.name) for entry in CATALOGUE)


VERDICT = verdict_with()

KINDS = {
    "cut_power_begun_count": 2.0,
    "cut_power_effect_count": 1.0,
    "cut_power_acknowledged_sends_count": 1200.0,
    "cut_power_reads_count": 30.0,
    "delay_begun_count": 0.0,
    "delay_effect_count": 0.0,
}
"""Of the check `fault-effects`."""


@dataclass(frozen=True, kw_only=True)
class RunSpec:
    """What happened in a made-up run."""

    seconds: float = 45.0
    rate: int = 60
    faults: Sequence[Fault] = ()
    anomalies: Sequence[Anomaly] = ()
    verdict: Verdict | None = None
    state: RunState = RunState.CHECKED
    title: str = "Kills and pauses under produce and poll"
    scenario: str = "smoke"
    failure: str | None = None
    sealed: bool = True
    sampled: bool = False
    seed: int = 7
    keys: tuple[str, ...] = ("t-0", "t-1", "t-2")
    lost: frozenset[int] = frozenset()
    """Sends, by their place among the sends, that no poll returns; each becomes an anomaly."""
    release: str = "4.3.1"
    digests: dict[str, str] = field(default_factory=dict)
    wire: pa.Table | None = None
    metadata_log: pa.Table | None = None
    windows: pa.Table | None = None
    """Tables of the cluster, if the run recorded them."""
    node_ids: dict[str, int] = field(default_factory=dict)
    origin_utc_ns: int = 0
    play: str = "play: []\n"
    waived: tuple[str, ...] = ()
    about: dict[str, str] = field(default_factory=lambda: {"system": "kafka"})
    """The system, the kind of cluster and the host, as far as they are recorded."""


def write_run(results: Path, spec: RunSpec) -> RunDirectory:
    """Write the run directory, all but the reports."""
    run = RunDirectory.create(results, spec.scenario, datetime(2026, 3, 1, 8, 0, tzinfo=UTC))
    write_manifest(run.manifest_path, manifest_of(spec))
    run.scenario_path.write_text(f"name: {spec.scenario}\n")
    run.play_path.write_text(spec.play)
    for node in NODES:
        (run.nodes / node / "logs").mkdir(parents=True)
        (run.nodes / node / "logs" / "server.log").write_text("started\n")
        (run.nodes / node / "disk").mkdir()
        (run.nodes / node / "disk" / "00000000000000000000.log").write_bytes(b"\0")
    (run.clients / "producer-0.log").write_text("started\n")
    lost = write_history(run, spec) if spec.sealed else []
    if spec.verdict is not None:
        write_verdict(run.verdict_path, spec.verdict)
    _write_anomalies(run, [*spec.anomalies, *lost])
    return run


def manifest_of(spec: RunSpec) -> Manifest:
    """The manifest of such a run."""
    recorded = spec.state in (RunState.RECORDED, RunState.CHECKED)
    return Manifest(
        run_id="a3f09c",
        state=spec.state,
        scenario=spec.scenario,
        title=spec.title,
        seed=spec.seed,
        waived=spec.waived,
        **spec.about,
        started_at="2026-03-01T08:00:00+00:00",
        origin_ns=123,
        command=f"fencepost run scenarios/{spec.scenario}.yaml --kafka 4.3.1 --seed {spec.seed}",
        fencepost_version="0.1.0",
        versions={
            "kafka": "4.3.1",
            "kafka_release": spec.release,
            "kafka_jars_sha256": "5d41402abc4b2a76" * 4,
            "java": "17.0.13",
            "metadata_version": "4.3-IV0",
        },
        machine={"system": "Linux 6.1.0", "processors": "2", "memory": "23.5 GiB"},
        keys=spec.keys,
        promises=Promises(idempotent=True, acks="all", consume="assign"),
        healed_ns=round(spec.seconds * 0.9 * SECOND) if recorded else None,
        end_ns=round(spec.seconds * SECOND) if recorded else None,
        failure=spec.failure,
        digests=spec.digests,
        node_ids=spec.node_ids,
        origin_utc_ns=spec.origin_utc_ns,
        recorded=tuple(_cluster_tables(spec)),
    )


def write_history(run: RunDirectory, spec: RunSpec) -> list[Anomaly]:
    """The four tables, as sealing leaves them, and the anomalies that are in them."""
    rows = _operations(spec)
    operations = pa.Table.from_pylist(
        [{name: row[name] for name in OPERATIONS.names} for row in rows], schema=OPERATIONS
    )
    records = pa.Table.from_pylist(_records(rows), schema=RECORDS)
    run.table_path("operations").mkdir(parents=True)
    half = len(operations) // 2
    for part, piece in enumerate((operations.slice(0, half), operations.slice(half))):
        pq.write_table(piece, run.table_path("operations") / f"part-{part:02}.parquet")
    run.table_path("records").mkdir()
    for bucket in range(RECORD_BUCKET_COUNT):
        keys = [k for k in spec.keys if zlib.crc32(k.encode()) % RECORD_BUCKET_COUNT == bucket]
        chosen = records.filter(
            pa.compute.is_in(records["key"], value_set=pa.array(keys, "string"))
        )
        order = [(name, "ascending") for name in ("key", "operation", "position")]
        path = run.table_path("records") / f"bucket-{bucket:02}.parquet"
        pq.write_table(chosen.sort_by(order), path)
    pq.write_table(faults_table(spec.faults), run.table_path("faults"))
    pq.write_table(_samples(spec), run.table_path("samples"))
    for name, table in _cluster_tables(spec).items():
        pq.write_table(table, run.table_path(name))
    return _lost_writes(rows, spec)


def _cluster_tables(spec: RunSpec) -> dict[str, pa.Table]:
    found = {"wire": spec.wire, "metadata_log": spec.metadata_log, "windows": spec.windows}
    return {name: table for name, table in found.items() if table is not None}


def faults_table(faults: Sequence[Fault]) -> pa.Table:
    """FAULTS, in the order given."""
    rows = [
        {
            "index": index,
            "fault": fault.kind,
            "targets": list(fault.targets),
            "begin_ns": round(fault.begin * SECOND),
            "effect_ns": None if fault.effect is None else round(fault.effect * SECOND),
            "evidence": fault.evidence if fault.effect is not None else None,
            "end_ns": None if fault.end is None else round(fault.end * SECOND),
            "heal_evidence": fault.heal_evidence if fault.end is not None else None,
        }
        for index, fault in enumerate(faults)
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def _operations(spec: RunSpec) -> list[dict]:
    """Sends at the rate, polls, one final read a key; in the order of their calls."""
    random = np.random.default_rng(spec.seed)
    sends = _sends(spec, random, round(spec.rate * spec.seconds * 0.88)) if spec.rate else []
    rows = [*sends, *_polls(spec, random, sends), *_reads(spec)] if sends else []
    rows.sort(key=lambda row: (row["call_ns"], row["process"]))
    for index, row in enumerate(rows):
        row["index"] = index
    return rows


def _sends(spec: RunSpec, random: np.random.Generator, count: int) -> list[dict]:
    calls = np.sort(random.uniform(0.2, spec.seconds * 0.88, count))
    usual = random.lognormal(np.log(0.004), 0.6, count)
    rows = []
    for place, (call, took) in enumerate(zip(calls, usual, strict=True)):
        outcome, error, ended = "ok", None, call + took
        stall = next((f for f in spec.faults if _stalls(f, call, place)), None)
        if stall is not None:
            ended = min(stall.end or spec.seconds, call + 3.0) + took
            if ended - call > 2.9:
                outcome, error = "info", "_MSG_TIMED_OUT"
            elif place % 23 == 0:
                outcome, error = "fail", "_QUEUE_FULL"
        rows.append(
            {
                "process": place % 3,
                "f": "send",
                "key": spec.keys[place % len(spec.keys)],
                "call_ns": round(call * SECOND),
                "return_ns": round(ended * SECOND),
                "outcome": outcome,
                "error": error,
                "record_count": 1,
                "place": place,
                "value": (place % 3 + 1) << 40 | place,
                "offset": place // len(spec.keys) if outcome == "ok" else None,
            }
        )
    return rows


def _stalls(fault: Fault, at: float, place: int) -> bool:
    """A broken node leads a third of the keys."""
    if fault.effect is None or not fault.targets:
        return False
    number = int(fault.targets[0].rpartition("-")[2]) if fault.targets[0][-1].isdigit() else 0
    return place % 3 == number % 3 and fault.effect <= at <= (fault.end or at)


def _polls(spec: RunSpec, random: np.random.Generator, sends: Sequence[dict]) -> list[dict]:
    """One poll a twentieth of a second; it returns what was acknowledged since the one before."""
    readable = sorted((s for s in sends if s["outcome"] == "ok"), key=lambda s: s["return_ns"])
    returned = np.array([send["return_ns"] for send in readable])
    rows, done = [], 0
    for place, start in enumerate(np.arange(0.3, spec.seconds * 0.89, 0.05)):
        call_ns = round(start * SECOND)
        until = int(np.searchsorted(returned, call_ns))
        seen = [send for send in readable[done:until] if send["place"] not in spec.lost]
        done = until
        rows.append(
            {
                "process": 10 + place % 2,
                "f": "poll",
                "key": None,
                "call_ns": call_ns,
                "return_ns": call_ns + int(random.integers(2_000_000, 30_000_000)),
                "outcome": "ok",
                "error": None,
                "record_count": len(seen),
                "seen": sorted(seen, key=lambda send: (send["key"], send["place"])),
            }
        )
    return rows


def _reads(spec: RunSpec) -> list[dict]:
    return [
        {
            "process": 20,
            "f": "final-read",
            "key": key,
            "call_ns": round(spec.seconds * 0.92 * SECOND) + place,
            "return_ns": round(spec.seconds * 0.99 * SECOND),
            "outcome": "ok",
            "error": None,
            "record_count": 0,
        }
        for place, key in enumerate(spec.keys)
    ]


def _records(rows: Sequence[dict]) -> list[dict]:
    return [
        {
            "key": record["key"],
            "offset": record["offset"],
            "value": record["value"],
            "operation": row["index"],
            "position": position,
            "process": row["process"],
            "f": row["f"],
            "outcome": row["outcome"],
            "call_ns": row["call_ns"],
            "return_ns": row["return_ns"],
            "session": 0,
        }
        for row in rows
        for position, record in enumerate([row] if row["f"] == "send" else row.get("seen", []))
    ]


def _lost_writes(rows: Sequence[dict], spec: RunSpec) -> list[Anomaly]:
    """The proof of each lost send: itself, and the first poll that went over its place."""
    return [
        Anomaly(
            check="lost-write",
            key=send["key"],
            allowed=False,
            proof=Proof.of(
                "Send {send} of value {value} was acknowledged at offset {offset}; {f} {over} "
                "returned offset {reached} of the same key, and no ok read returned the value.",
                operations={"send": send["index"], "over": over["index"]},
                offsets={"offset": send["offset"], "reached": record["offset"]},
                values={"value": send["value"], "later_value": record["value"]},
                sources={"offset": "send", "value": "send", "reached": "over"},
                f=over["f"],
            ),
        )
        for send in rows
        if send["f"] == "send" and send["place"] in spec.lost and send["outcome"] == "ok"
        for over, record in [_first_over(rows, send)]
    ]


def _first_over(rows: Sequence[dict], send: dict) -> tuple[dict, dict]:
    return next(
        (row, record)
        for row in rows
        if row["f"] == "poll"
        for record in row["seen"]
        if record["key"] == send["key"] and record["offset"] > send["offset"]
    )


def _samples(spec: RunSpec) -> pa.Table:
    if not spec.sampled:
        return SAMPLES.empty_table()
    random = np.random.default_rng(spec.seed + 1)
    rows = []
    for place, node in enumerate(NODES):
        for at in np.arange(0.0, spec.seconds, 1.0):
            gone = any(
                node in f.targets and f.kind == "kill" and f.begin <= at <= (f.end or at)
                for f in spec.faults
            )
            if gone:
                continue
            rss = (300 + 40 * place + 4 * at + random.normal(0, 3)) * (1 << 20)
            cpu = abs(random.normal(0.25 + 0.05 * place, 0.08))
            for metric, value in (("rss_bytes", rss), ("cpu_fraction", cpu)):
                rows.append(
                    {
                        "time_ns": round(at * SECOND),
                        "source": node,
                        "metric": metric,
                        "value": float(value),
                    }
                )
    return pa.Table.from_pylist(rows, schema=SAMPLES)


def _write_anomalies(run: RunDirectory, anomalies: Sequence[Anomaly]) -> None:
    for check in dict.fromkeys(anomaly.check for anomaly in anomalies):
        run.anomalies.mkdir(exist_ok=True)
        rows = [anomaly.row() for anomaly in anomalies if anomaly.check == check]
        table = pa.Table.from_pylist(rows, schema=ANOMALIES)
        pq.write_table(table, run.anomalies / f"{check}.parquet")
