"""The manifest of a run: enough to repeat it, and to know what its verdict is about.

Written when the run starts and again as it moves on, each time atomically, so that a run killed at
any moment says how far it came. JSON, one key a field; a reader refuses keys that it does not know,
values of another type than their field's, and formats that are not its own.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from fencepost.history.atomic import write_atomically
from fencepost.history.clock import ClockSkew
from fencepost.history.failure import HarnessError
from fencepost.history.models import MODEL_TABLES, Isolation, Model
from fencepost.history.parsing import parsed

FORMAT_VERSION = 1
_MAPPINGS = (
    "versions",
    "machine",
    "digests",
    "node_ids",
    "last_ids",
    "second_roles",
    "asked_operations",
    "required_bounds",
)


_NAMED = "_release"
"""The end of the word for the name that the user gave a release, in `versions`."""
_LEVELS = ("metadata_version", "inter_broker_protocol")


Consumed = Literal["assign", "subscribe", "both"]


class RunState(StrEnum):
    """The stage that a run reached."""

    RUNNING = "running"
    RECORDED = "recorded"
    CHECKED = "checked"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """Clients that go on reading where one of them, or an earlier one in its place, left off.

    A consumer group is one, and so is a consumer that assigns itself its keys. They begin at the
    first offset of a key and commit what is on record alone, so that together they miss nothing.
    """

    name: str
    processes: tuple[int, ...]
    """The numbers of their first logical clients."""
    stride: int
    """The numbers of two logical clients, one in place of the other, differ by a multiple of it."""
    poll_max: int
    """The most records that one of their polls returns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """The promises of the clients' configuration, which decide what is an anomaly."""

    idempotent: bool
    acks: Literal["all", "1", "0", ""]
    """The setting of Kafka: "all", "1", "0"; empty: not known, as of histories made elsewhere."""
    consume: Consumed
    """The way in which consumers got their keys: "assign", "subscribe" or "both"."""
    metadata_age_max_ms: float | None = None
    """The bound on the age of a read of metadata against what was known; None: no promise."""
    metadata_settled_age_max_ms: float | None = None
    """The same of reads that are called when nothing has been broken for `metadata_settle_ms`."""
    metadata_settle_ms: float = 0.0
    topics_max: int | None = None
    """The number of topics that clients of metadata have at a time; None: there are no such."""
    readers: tuple[Readers, ...] = ()
    """Those of the polls; none where it is not known who goes on from whom."""
    leases: bool = False
    """True if brokers count their own leases, and answer no client once one is over."""

    @property
    def metadata_age_is_bounded(self) -> bool:
        """True if any read of metadata may be too old."""
        ages = (self.metadata_age_max_ms, self.metadata_settled_age_max_ms)
        return any(age_ms is not None for age_ms in ages)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionChange:
    """A change of version, during the run, of something under test."""

    time_ns: int
    subject: str
    """A node, or a feature such as metadata.version."""
    version: str
    """The release that the node ran from then on, or the feature's level."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NemesisWork:
    """The work of random faults. It is idle while it has nothing broken, though something is due.

    Nothing is due while a drawn fault lasts, and in the drawn gap before the next one.
    """

    work_s: float
    """The time for which it was at work."""
    fault_count: int
    """The faults that were seen to take effect meanwhile."""
    idle_s: float
    """The longest time for which it was idle."""
    idle_at_s: float
    """The beginning of that time, by the run's clock."""
    idle_for: str
    """The event that it waited for then, in words."""
    waits_s: Mapping[str, float] = field(default_factory=dict)
    """All the time for which it was idle, by the kind of event that it waited for."""

    @property
    def faults_a_minute(self) -> float:
        """The number of faults a minute of its work."""
        return 60 * self.fault_count / self.work_s if self.work_s else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NotWhole:
    """A shortfall of a cluster that lacked nothing but brokers which ran and took no part."""

    shortfall: str
    """Its words in `Manifest.shortfalls`."""
    time_ns: int
    """The time when the cluster should have been whole."""
    broker_ids: tuple[int, ...]
    """The brokers that took no part. Whatever else was lacking were their replicas."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """One run. Times are ns of the run's clock, unless they say UTC."""

    format_version: int = FORMAT_VERSION
    run_id: str
    state: RunState
    scenario: str
    title: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The parameters of the scenario that were filled in from outside, as `--set` takes them."""
    system: str = ""
    """The system under test, by its name in scenarios. Empty: not recorded, as in old runs."""
    cluster: str = ""
    """The kind of its nodes, as `--cluster` names it."""
    host: str = ""
    """The kind of host that they run on, as `--host` names it."""
    seed: int
    started_at: str
    """The time of its start: UTC, ISO 8601."""
    origin_ns: int
    """CLOCK_MONOTONIC at the start of the run."""
    origin_utc_ns: int = 0
    """The wall clock at the start of the run, ns since 1970: what Kafka's own timestamps are of."""
    command: str
    """The command line that repeats the run, its seed included."""
    fencepost_version: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """The versions under test when the run began, as the cluster tells them."""
    changes: tuple[VersionChange, ...] = ()
    """The changes of these during the run, in order: releases of nodes, levels of features."""
    machine: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    node_ids: Mapping[str, int] = field(default_factory=dict)
    """The id in Kafka of each node, controllers first; -1 for one that had several."""
    last_ids: Mapping[str, int] = field(default_factory=dict)
    """The last of those that had several."""
    second_roles: Mapping[str, str] = field(default_factory=dict)
    """The roles that nodes have besides the one they are named for, by node."""
    recorded: tuple[str, ...] = ()
    """The tables of the cluster that the run set out to record: checks of others are not asked."""
    model: str = ""
    """The model of an open history: the objects of its operations (`history.models.Model`)."""
    isolation: str = ""
    """The promise to the transactions of an open history (`history.models.Isolation`)."""
    damages: tuple[str, ...] = ()
    """The parts of the nodes' disks that could not be read when the cluster had stopped."""
    waived: tuple[str, ...] = ()
    """The demands of the scenario that a flag took back, a sentence each: nothing of the run's
    verdict rests on these."""
    required_checks: tuple[str, ...] = ()
    """The checks that the scenario demands; one that had no case makes the run unknown."""
    known: tuple[str, ...] = ()
    """The findings by name that the scenario reckons with on this release
    (`checkers.known_findings`)."""
    expected: tuple[str, ...] = ()
    """The anomalies that the scenario expects of this release; empty: none, or not recorded."""
    asked_faults: tuple[str, ...] = ()
    """The kinds of fault that the run was asked for: those that its mix draws from, or that the
    steps of its play begin. None: a control, or a run that did not record them."""
    drawn: bool = False
    """Its faults were drawn from a seed. One that met nothing to disturb is counted and no more;
    a step of a play is stated because something rests on it."""
    required_faults: tuple[str, ...] = ()
    """The kinds that the scenario demands: one that never took effect makes the run unknown."""
    required_windows: tuple[str, ...] = ()
    """The messages in whose windows the scenario demands a strike, by their APIs' names."""
    required_bounds: Mapping[str, float] = field(default_factory=dict)
    """The bounds of service that the scenario demands: `unavailable_max_s` on each silence of a
    key, `p99_max_ms` on the latency outside faults (`checkers.service_level`),
    `client_duplicates_max_count` on what clients send again under another producer epoch,
    `fatal_errors_max_count` on the transactions with an error that ends their client."""
    asked_windows: tuple[str, ...] = ()
    """The kinds of window that its mix may open: a message and its direction."""
    asked_strikes: tuple[str, ...] = ()
    """The strikes that its mix may make in them."""
    asked_operations: Mapping[str, float | None] = field(default_factory=dict)
    """The kinds of operation that its workloads set out to do besides sends, polls and reads, each
    with the time, s, by which clients have long done one if nothing is broken; None: none is sure.
    """
    served_faults: tuple[str, ...] | None = None
    """The kinds during which clients must be served; None: all that took effect."""
    stuck_isr_limit_s: float = 0.0
    """The bound on a replica's time out of its ISR after healing, and while nothing is broken."""
    promises: Promises
    healed_ns: int | None = None
    """The time when the last fault was healed and the final reads could begin."""
    end_ns: int | None = None
    nemesis: NemesisWork | None = None
    """The work of the run's random faults; None: it had none, or did not record it."""
    clock_skews: tuple[ClockSkew, ...] = ()
    """The times of wrong wall clocks, by node: the times in its log then say less."""
    clock_watched: bool = False
    """The nodes share this machine's wall clock, which kept step with the run's throughout but for
    the skews."""
    failure: str | None = None
    """The reason why the run failed, if it did."""
    shortfalls: tuple[str, ...] = ()
    """The parts of the plan that the run could not do (a step whose bound passed, a cluster that
    did not recover): a run with any of these is never valid."""
    ended_early: bool = False
    """Whether the user ended the faults before their time; a shortfall says when."""
    not_whole: tuple[NotWhole, ...] = ()
    """Of some shortfalls, as data: the brokers that were lacking, and when."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """The SHA-256 of each sealed file, by its path in the run directory."""
    harness: str | None = None
    """The identity of the harness that makes the run (`clusters.hosts.process.harness_mark`)."""
    harness_pid: int | None = None
    """Of runs from before `harness`: its pid alone, which may be that of another by now."""

    @property
    def release(self) -> str:
        """The release under test, as the cluster tells it; a user's own build with its path.

        Where nodes came to run others, these follow, in the order in which they came. Nodes of our
        own have none but the level of their protocol.
        """
        versions = self.versions
        system = next((key.removesuffix(_NAMED) for key in versions if key.endswith(_NAMED)), "")
        version = versions.get(system or "kafka", "")
        if not version:
            levels = (f"{key} {versions[key]}" for key in _LEVELS if key in versions)
            version = f"none ({level})" if (level := next(levels, "")) else "not recorded"
        name = versions.get(f"{system}{_NAMED}", version)
        first = version if name == version else f"{version} ({name})"
        later = (one.version for one in self.changes if one.subject in self.node_ids)
        return ", ".join(dict.fromkeys((first, *later)))

    @property
    def tested(self) -> dict[str, str]:
        """What the verdict is about, in the words of flags: a result that names less misleads."""
        return {
            "system": self.system or "not recorded",
            "cluster": self.cluster or self.versions.get("cluster", "not recorded"),
            "release": self.release,
            "host": self.host or self.versions.get("host", "not recorded"),
            "seed": str(self.seed),
            **({"set": self.parameter_words} if self.parameters else {}),
        }

    @property
    def parameter_words(self) -> str:
        """The parameters that were filled in, as `rate=600 faults=[kill]`."""
        return " ".join(f"{name}={value}" for name, value in self.parameters.items())

    @property
    def jars(self) -> dict[str, str]:
        """The digests of the jars under test, where there are any."""
        return {name: self.versions[name] for name in self.versions if name.endswith("_sha256")}

    @property
    def tables(self) -> frozenset[str]:
        """The tables that were recorded: a check that needs another one is not asked.

        Only a run of the harness has its faults on record; an open history has none to tell of.
        """
        own = (MODEL_TABLES[Model(self.model)],) if self.model else ("operations", "records")
        faults = ("faults",) if self.cluster else ()
        return frozenset((*own, *self.recorded, *faults))


def read_manifest(path: Path) -> Manifest:
    """Return the manifest at `path`.

    Raise HarnessError if it is missing, torn or of another format.
    """
    try:
        content = json.loads(path.read_bytes())
    except OSError as error:
        raise HarnessError(f"cannot read the manifest {path}: {error.strerror}") from error
    except RecursionError:
        raise HarnessError(f"the manifest {path} is not JSON: it is nested too deeply") from None
    except ValueError as error:
        raise HarnessError(f"the manifest {path} is not JSON: {error}") from error
    return _parse(content, path)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Replace the manifest at `path`, atomically. Raises HarnessError if the disk refuses."""
    content = {item.name: getattr(manifest, item.name) for item in fields(Manifest)}
    for name in _MAPPINGS:
        content[name] = dict(content[name])
    content["promises"] = asdict(manifest.promises)
    content["nemesis"] = None if manifest.nemesis is None else asdict(manifest.nemesis)
    content["changes"] = [asdict(change) for change in manifest.changes]
    content["not_whole"] = [asdict(one) for one in manifest.not_whole]
    content["clock_skews"] = [asdict(skew) for skew in manifest.clock_skews]
    write_atomically(path, (json.dumps(content, indent=2) + "\n").encode())


def _parse(content: Any, path: Path) -> Manifest:
    found = content.get("format_version") if isinstance(content, dict) else None
    if found != FORMAT_VERSION:
        raise HarnessError(f"the manifest {path} has format {found}, expected {FORMAT_VERSION}")
    try:
        manifest = parsed(Manifest, content)
        if manifest.model:
            parsed(Model, manifest.model, where="model")
        if manifest.isolation:
            parsed(Isolation, manifest.isolation, where="isolation")
    except ValueError as error:
        raise HarnessError(f"the manifest {path} is wrong: {error}") from error
    return manifest
