"""A night's file: which scenarios run on what, with which flags, and how often.

    time: 8h
    entries:
      - scenario: storm
        cluster: [kafka, reference]
        releases: [3.9.2, 4.3.1]
        hosts: [local, netns]
        with: [{}, {nemesis: "kill,partition"}]
        runs: 5

An entry stands for each combination of its lists; each is a *cell* of the night. All mistakes of
the file, and those of its scenarios, are told together, with their lines.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.systems import MAKES, SYSTEMS, system_of
from fencepost.harness.prepare.releases import default_cluster
from fencepost.harness.scenario.flags import flag_overrides
from fencepost.harness.scenario.on_other_system import key_of_release
from fencepost.harness.scenario.options import HostKind
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.validation import MappingReader, known_words, mapping
from fencepost.harness.scenario.yaml_file import Document, load_document
from fencepost.harness.series.night_variants import counted_from_1, flag_words, texts, variants
from fencepost.history.failure import Mistakes, SpecError, UsageError
from fencepost.history.run_directory import refuse_name
from fencepost.nemesis.words import duration_s

_EXPECTED: Final = "a night is a mapping of keys to values, e.g. 'entries: [{scenario: smoke}]'"
_KEYS: Final = ("name", "title", "time", "bound", "keep", "entries")
_KEEP: Final = ("all", "pages")
_ENTRY_KEYS: Final = (
    *("scenario", "cluster", "system", "releases", "hosts", "with"),
    *("runs", "share", "bound"),
)
_CELLS_MAX: Final = 1000
_START_S: Final = 15 * 60.0
"""What a run takes at most besides its faults and its recovery: fetch, start, seal and checks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One scenario on one cluster, release and host, with one set of flags: what a run repeats."""

    entry: int
    scenario: str
    """The scenario's name, under which its runs are stored."""
    issue: str | None
    system: str
    cluster: str
    release: str | None
    """None: nodes of our own run none."""
    host: str
    variant: str
    """Its own flags, as a command line has them; empty: none."""
    arguments: tuple[str, ...]
    """The words behind `fencepost run`, without those of the seed, the results and the output."""
    bound_s: float
    """The wall time after which a run of it is ended."""

    @property
    def names(self) -> Mapping[str, Any]:
        """What tells it from other cells, as `night.json` has it."""
        told = ("entry", "scenario", "system", "cluster", "release", "host", "variant")
        return {name: getattr(self, name) for name in told}

    @property
    def subject(self) -> str:
        """What its scenario runs on, as `report.sums.SummedRun.subject` says it."""
        release = None if self.release is None else f"{self.cluster} {self.release}"
        host = "" if self.host == HostKind.LOCAL else self.host
        return ", ".join(filter(None, (release or self.cluster, host, self.variant)))


@dataclass(frozen=True, slots=True, kw_only=True)
class NightEntry:
    """How often the cells of an entry are run."""

    run_count: int | None
    """Runs of each cell; None: as many as fit into its share of the time."""
    share: float = 0.0
    """Its part of the night's time, where it has no number of runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightFile:
    """The content of a night's file, whole and legal."""

    path: str
    """As the user gave it."""
    name: str
    title: str
    time_s: float | None
    """The time for all runs together; None: until each cell has its runs."""
    thins: bool
    """Thin runs that are valid (`history.thinned`)."""
    entries: tuple[NightEntry, ...]
    cells: tuple[Cell, ...]
    scenarios: tuple[Scenario, ...]
    """The scenario of each cell, with its flags laid over it."""
    flags: tuple[Mapping[str, Any], ...]
    """The flags of each cell, by their names with `_`."""
    places: tuple[str, ...]
    """The place of each cell's entry, `file:line`."""


_Laid = tuple[Cell, Scenario, Mapping[str, Any]]
_Load = Callable[[Path, tuple[tuple[str, Any], ...]], Scenario]
"""A scenario's file with flags laid over it; each is read once."""


def load_night(path: Path) -> NightFile:
    """Return the night in a file. Raises UsageError: each mistake with its file and line."""
    document = load_document(path, expected=_EXPECTED)
    try:
        return _night(document, path)
    except SpecError as error:
        raise document.error(error) from None


def _night(document: Document, path: Path) -> NightFile:
    read = MappingReader(document.data)
    read.refuse_unknown(_KEYS)
    name = read.at("name", _name, otherwise=path.stem)
    time_s = read.at("time", _duration, otherwise=None)
    bound_s = read.at("bound", _duration, otherwise=None)
    keep = read.at("keep", lambda v: _known(v, _KEEP, "word")[0], otherwise="all")
    listed = read.at("entries", _listed_entries, otherwise=[])
    if "entries" not in document.data:
        read.mistakes.note((), "a night needs 'entries'")
    elif not listed and "entries" not in read.unread:
        read.mistakes.note(("entries",), "a night needs at least one entry")
    entries, cells = [], []
    load = cache(lambda path, flags: load_scenario(path, flag_overrides(dict(flags))))
    for index, value in enumerate(listed):
        with read.mistakes.below("entries", index):
            entry, own = _entry(value, index, bound_s=bound_s, timed=time_s is not None, load=load)
            entries.append(entry)
            cells += own
    if len(cells) > _CELLS_MAX:
        read.mistakes.note(("entries",), f"{len(cells):,} combinations; at most {_CELLS_MAX:,}")
    shares = sum(entry.share for entry in entries)
    if shares > 1 + 1e-9:
        read.mistakes.note(("entries",), f"the shares add up to {shares:g}; at most 1")
    read.mistakes.refuse()
    return NightFile(
        path=str(path),
        name=name,
        title=str(document.data.get("title", name)),
        time_s=time_s,
        thins=keep == "pages",
        entries=_with_shares(entries),
        cells=tuple(cell for cell, _, _ in cells),
        scenarios=tuple(scenario for _, scenario, _ in cells),
        flags=tuple(flags for _, _, flags in cells),
        places=tuple(document.place(("entries", cell.entry)) for cell, _, _ in cells),
    )


def _with_shares(entries: Sequence[NightEntry]) -> tuple[NightEntry, ...]:
    """Return the entries; those with neither runs nor a share have equal parts of what is left."""
    without = [one for one in entries if one.run_count is None and not one.share]
    left = 1 - sum(one.share for one in entries)
    share = max(left, 0.0) / len(without) if without else 0.0
    return tuple(
        NightEntry(run_count=None, share=share or 1 / len(entries)) if one in without else one
        for one in entries
    )


def _entry(
    value: object, index: int, *, bound_s: float | None, timed: bool, load: _Load
) -> tuple[NightEntry, list[_Laid]]:
    read = MappingReader(mapping(value, example="{scenario: smoke, runs: 3}"))
    read.refuse_unknown(_ENTRY_KEYS)
    names = read.at("scenario", texts, otherwise=())
    if "scenario" not in read.data:
        read.mistakes.note((), "an entry needs a 'scenario'")
    clusters = read.at("cluster", lambda v: _known(v, MAKES, "cluster"), otherwise=("",))
    systems = read.at("system", lambda v: _known(v, SYSTEMS, "system"), otherwise=("",))
    releases = read.at("releases", _releases, otherwise=("",))
    kinds = [str(kind) for kind in HostKind]
    hosts = read.at("hosts", lambda v: _known(v, kinds, "host"), otherwise=("local",))
    each_variant = variants(read)
    runs = read.at("runs", counted_from_1, otherwise=None)
    share = read.at("share", _share, otherwise=0.0)
    own_bound_s = read.at("bound", _duration, otherwise=bound_s)
    if runs is not None and share:
        read.mistakes.note(("share",), "an entry has 'runs' or a 'share' of the time, not both")
    if not timed and share:
        read.mistakes.note(("share",), "a share needs a 'time' of the night")
    cells = []
    for name, cluster, system, release, host, (at, variant) in product(
        names, clusters, systems, releases, hosts, each_variant
    ):
        flags = {"system": system or None, **variant}
        cell = _cell(
            name,
            flags,
            entry=index,
            cluster=cluster,
            release=release,
            host=host,
            bound_s=own_bound_s,
            mistakes=read.mistakes,
            at=at,
            load=load,
        )
        cells += [] if cell is None else [cell]
    read.mistakes.refuse()
    run_count = runs if runs is not None or share or timed else 1
    return NightEntry(run_count=run_count, share=share), cells


def _cell(
    name: str,
    flags: Mapping[str, Any],
    *,
    entry: int,
    cluster: str,
    release: str,
    host: str,
    bound_s: float | None,
    mistakes: Mistakes,
    at: tuple[str | int, ...],
    load: _Load,
) -> "_Laid | None":
    """Return a cell and its scenario; None, and its mistakes noted, if it cannot be."""
    try:
        path = find_scenario(name)
    except UsageError as error:
        mistakes.note(("scenario",), str(error))
        return None
    try:
        plain = load(path, (("system", flags["system"]), ("set", flags.get("set"))))
        key = key_of_release(system_of(plain.cluster))
        laid = {**flags, **({key: release} if release else {})}
        scenario = load(path, tuple(laid.items()))
    except UsageError as error:
        for line in error.args:
            mistakes.note(at, f"{name}: {line}")
        return None
    if flags.get("nemesis") == "none":
        scenario = scenario.without_faults()
    make = MAKES[cluster] if cluster else default_cluster(scenario)
    system = system_of(scenario.cluster)
    if make not in system.makes:
        made = ", ".join(system.by_name)
        mistakes.note(("cluster",), f"{name} runs on {system.name}, which can be: {made}")
        return None
    limits_s = scenario.time_limit_s + scenario.recovery_limit_s
    variant = tuple(flag_words({k: v for k, v in flags.items() if k != "system"}))
    of_system = ("--system", flags["system"]) if flags["system"] else ()
    words = (
        *(str(name), "--cluster", str(make)),
        *of_system,
        *((f"--{key}", release) if release else ()),
        *(("--host", host) if host != HostKind.LOCAL else ()),
        *variant,
    )
    return (
        Cell(
            entry=entry,
            scenario=scenario.name,
            issue=scenario.issue,
            system=system.name,
            cluster=str(make),
            release=None if make.of_our_own else scenario.cluster.release,
            host=host,
            variant=" ".join((*of_system, *variant)),
            arguments=words,
            bound_s=bound_s or 2 * limits_s + _START_S,
        ),
        scenario,
        flags,
    )


def _listed_entries(value: object) -> list[object]:
    if not isinstance(value, list):
        raise SpecError((), f"expected a list of entries, found {value!r:.80}")
    return value


def _known(value: object, known: Any, what: str) -> tuple[str, ...]:
    words = texts(value)
    try:
        return known_words(words, list(known), what=what)
    except SpecError as error:
        # A single word has no index.
        raise (error if isinstance(value, list) else SpecError((), error.message)) from None


def _releases(value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    for one in values:
        if isinstance(one, int | float):
            raise SpecError((), f"{one!r} is a number; quote it: '{one}'")
    return texts(value)


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise SpecError((), f"a share of the time is above 0 and at most 1; found {value!r:.80}")
    return float(value)


def _duration(value: object) -> float:
    seconds = duration_s(value)
    if seconds <= 0:
        raise SpecError((), "expected more than 0s")
    return seconds


def _name(value: object) -> str:
    try:
        refuse_name(str(value))
    except UsageError:
        raise SpecError(
            (), f"a name is letters, digits, '.', '_' and '-'; found {value!r:.80}"
        ) from None
    return str(value)
