"""The speed of the checkers, how it grows with the size, and the memory they take.

A section is a kind of history and the work done on it. Each size of it is made in a process of its
own, and measured in another, so that the memory used to make it is not in the figures. Every
repetition ends in a verdict, and a verdict that is not the expected one ends the bench: a fast
wrong answer is no result.

Rates are of all that counts as one in the section (operations, records, transactions). Growth is
the exponent b of time ~ size^b between neighbouring sizes, of the medians.
"""

import multiprocessing
import statistics
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.checker_sections import SECTIONS
from bench.measuring import Cost, growth, spread
from history.failure import HarnessError

__all__ = ["CheckerFigures", "SizeFigures", "checkers_bench"]

_MEGABYTE = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeFigures:
    """The figures of one size of one section."""

    section: str
    unit: str
    size: int
    costs: tuple[Cost, ...]
    """The cost of each repetition, in order; the first one finds everything cold."""

    @property
    def per_s(self) -> tuple[float, ...]:
        """The rate of each repetition."""
        return tuple(self.size / cost.seconds for cost in self.costs)

    @property
    def median_s(self) -> float:
        """The median time of the repetitions."""
        return statistics.median(cost.seconds for cost in self.costs)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckerFigures:
    """The figures of all sections, in order."""

    sizes: tuple[SizeFigures, ...]

    def as_data(self) -> dict[str, object]:
        """Return the figures for JSON."""
        return {
            "sizes": [{**asdict(one), "per_s": one.per_s} for one in self.sizes],
            "growth": self.growth(),
        }

    def growth(self) -> dict[str, tuple[float, ...]]:
        """Return the exponents of each section that has several sizes."""
        found = {}
        for name, sizes in self._by_section().items():
            if len(sizes) > 1:
                found[name] = growth([one.size for one in sizes], [one.median_s for one in sizes])
        return found

    def lines(self) -> list[str]:
        """Return the figures as lines of text."""
        return [line for sizes in self._by_section().values() for line in self._table(sizes)]

    def _by_section(self) -> Mapping[str, list[SizeFigures]]:
        found: dict[str, list[SizeFigures]] = {}
        for one in self.sizes:
            found.setdefault(one.section, []).append(one)
        return found

    def _table(self, sizes: Sequence[SizeFigures]) -> Iterator[str]:
        first = sizes[0]
        yield f"{first.section}: {SECTIONS[first.section].title}"
        yield (
            f"  {first.unit:>14}  {'a second: min / median / max':^37}  "
            f"{'seconds: min / median / max':^29}  {'cores':>5}  peak MB"
        )
        for one in sizes:
            cores = sum(cost.cpu_s for cost in one.costs) / sum(c.seconds for c in one.costs)
            peak = max(cost.rss_bytes_max for cost in one.costs) // _MEGABYTE
            seconds = [cost.seconds for cost in one.costs]
            yield (
                f"  {one.size:>14,}  {spread(one.per_s, '11,.0f')}  {spread(seconds, '8.2f')}"
                f"  {cores:5.2f}  {peak:7,}"
            )
        exponents = self.growth().get(first.section, ())
        if exponents:
            yield f"  growth: n^{', n^'.join(f'{one:.2f}' for one in exponents)}"


def checkers_bench(
    *,
    only: Sequence[str],
    sizes: Sequence[int],
    repetitions: int,
    directory: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> CheckerFigures:
    """Measure these sections, at these sizes (of each its own, if none are given).

    `directory`: where histories are made, and removed again. Raises HarnessError if a verdict is
    not the expected one, or a process dies.
    """
    found = []
    for name in only:
        section = SECTIONS[name]
        for size in sorted(sizes or section.sizes):
            with tempfile.TemporaryDirectory(prefix="fencepost-bench-", dir=directory) as place:
                say(f"{name}: making {size:,} {section.unit}")
                _apart(_make, name, Path(place), size)
                costs = _apart(_measure, name, Path(place), size, repetitions)
            figures = SizeFigures(section=name, unit=section.unit, size=size, costs=costs)
            say(f"{name}: {size:,} {section.unit} in {figures.median_s:.2f} s")
            found.append(figures)
    return CheckerFigures(sizes=tuple(found))


def _make(section: str, directory: Path, size: int) -> tuple[Cost, ...]:
    SECTIONS[section].make(directory, size)
    return ()


def _measure(section: str, directory: Path, size: int, repetitions: int) -> tuple[Cost, ...]:
    return SECTIONS[section].measure(directory, size, repetitions)


def _apart(work: Callable[..., tuple[Cost, ...]], *arguments: object) -> tuple[Cost, ...]:
    """Measure in a process of its own, which begins with none of this one's memory."""
    context = multiprocessing.get_context("spawn")
    try:
        with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
            return pool.submit(work, *arguments).result()
    except BrokenProcessPool as error:
        raise HarnessError(f"a process of the bench died: {arguments[0]}") from error
