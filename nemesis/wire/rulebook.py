"""The rules that are laid, what each has met so far, and the frames that each holds.

Pure bookkeeping: it decides which rule a frame falls to. What is then done to the frame is the
session's business.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, Generic, TypeVar

from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.matching import Matcher
from fencepost.nemesis.wire.rules import Delay, Direction, Link, Reorder, Rule, Watch
from fencepost.nemesis.wire.status import RuleStatus

Held = TypeVar("Held")
"""A session's record of a frame that waits; the book only keeps it."""

_REMOVED_MAX: Final = 256
"""How many removed rules are known still. More than that are lifted within minutes of a storm."""


@dataclass(slots=True, eq=False)
class LaidRule(Generic[Held]):
    """A rule, and what came of it."""

    rule: Rule
    matcher: Matcher = field(init=False)
    random: Random = field(init=False)
    fitting_count: int = 0
    """The number of frames that fitted, the skipped ones included."""
    matched_count: int = 0
    held_count: int = 0
    delivered_count: int = 0
    undeliverable_count: int = 0
    first: str | None = None
    first_ns: int | None = None
    held: list[Held] = field(default_factory=list)
    """The held frames, in the order in which they came."""
    overtaken: dict[Link, Held] = field(default_factory=dict)
    """For a Reorder: the frame of each link that waits for the next one."""
    _status: RuleStatus | None = None
    """The status as last returned; None: it has changed since."""

    def __post_init__(self) -> None:
        self.matcher = Matcher(self.rule)
        seed = self.rule.action.seed if isinstance(self.rule.action, Delay) else 0
        self.random = Random(f"{seed} {self.rule.name}")  # noqa: S311 -- to be repeated, not kept secret

    @property
    def status(self) -> RuleStatus:
        """Return the status, cached, since it is asked for all the time."""
        self._status = self._status or RuleStatus(
            matched_count=self.matched_count,
            held_count=self.held_count,
            held_now=len(self.held),
            delivered_count=self.delivered_count,
            undeliverable_count=self.undeliverable_count,
            first=self.first,
            first_ns=self.first_ns,
        )
        return self._status

    def concerns(self, frame: Frame) -> bool:
        """Return whether the rule takes this frame; a frame that it takes is counted."""
        if not self.matcher.fits(frame):
            return False
        if self._overtakes(frame.link):
            return True
        self.fitting_count += 1
        match = self.rule.match
        spent = match.times is not None and self.matched_count >= match.times
        if spent or self.fitting_count <= match.skip:
            return False
        self.matched_count += 1
        self._status = None
        if self.first is None:
            self.first, self.first_ns = str(frame), frame.time_ns
        return True

    def keep(self, held: Held) -> None:
        """Take note that a frame waits because of this rule."""
        self.held.append(held)
        self.held_count += 1
        self._status = None

    def let_go(self, held: Held, *, delivered: bool) -> None:
        """Take note that a frame waits no more."""
        self.held.remove(held)
        self._status = None
        if delivered:
            self.delivered_count += 1
        else:
            self.undeliverable_count += 1

    def forget(self) -> tuple[Held, ...]:
        """Forget the frames that wait, and return them."""
        forgotten = tuple(self.held)
        self.held.clear()
        self._status = None
        return forgotten

    def _overtakes(self, link: Link) -> bool:
        waiting = self.overtaken.get(link)
        return isinstance(self.rule.action, Reorder) and waiting is not None


@dataclass(frozen=True, slots=True)
class Judgement(Generic[Held]):
    """The judgement of the rules on one frame."""

    entry: LaidRule[Held] | None
    """The entry of the rule that decides; None: the frame passes."""
    rule: str | None
    """The one to be named on the tape: the rule that decides, else one that only watches."""


_PASSES: Final[Judgement[Any]] = Judgement(None, None)
"""No rule concerns it, as of most frames."""


class Rulebook(Generic[Held]):
    """The rules in the order in which they were laid; and the last that were, for the status.

    A night lays ten thousand, and the status is asked for several times a second.
    """

    def __init__(self) -> None:
        self.in_use = False
        """True if any rule is laid. An attribute, since it is asked for each frame."""
        self.known: dict[str, LaidRule[Held]] = {}
        """The entries of what is laid, and of the last `_REMOVED_MAX` rules that were, by name."""
        self._removed: deque[str] = deque()
        self._laid: dict[str, LaidRule[Held]] = {}
        self._by_api: dict[tuple[Direction, int], tuple[LaidRule[Held], ...]] = {}
        """The entries that may concern frames of an API, as far as asked since the last change:
        most frames concern no rule.
        """

    def add(self, rule: Rule) -> None:
        """Lay a rule. Its name must not be in use; a removed rule of that name is forgotten."""
        assert rule.name not in self._laid, rule.name
        if self.known.pop(rule.name, None):  # the latest is the last
            self._removed.remove(rule.name)
        self.known[rule.name] = self._laid[rule.name] = LaidRule(rule)
        self._by_api.clear()
        self.in_use = True

    def remove(self, name: str) -> LaidRule[Held] | None:
        """Take a rule away: it concerns no further frame; return None if it is not laid."""
        entry = self._laid.pop(name, None)
        if entry is not None:
            self._removed.append(name)
        if len(self._removed) > _REMOVED_MAX:
            del self.known[self._removed.popleft()]
        self._by_api.clear()
        self.in_use = bool(self._laid)
        return entry

    def why_not_active(self, name: str) -> str:
        """Return the error message for a name that no active rule has."""
        return f"no rule {name} is active (active: {', '.join(self._laid) or 'none'})"

    def __contains__(self, name: str) -> bool:
        return name in self._laid

    @property
    def laid(self) -> Iterable[LaidRule[Held]]:
        """The rules that are laid, in their order."""
        return self._laid.values()

    def statuses(self) -> dict[str, RuleStatus]:
        """Return the status of every rule that is known, by its name."""
        return {name: entry.status for name, entry in self.known.items()}

    def wants(self, link: Link, direction: Direction, header: Header) -> bool:
        """Return whether a rule may concern a frame with this header; look at it then."""
        return any(
            entry.matcher.fits_header(link, direction, header)
            for entry in self._about(direction, header.api_key)
        )

    def judge(self, frame: Frame, *, only_watched: bool = False) -> Judgement[Held]:
        """Return the first rule that concerns the frame; those that only watch just count it.

        `only_watched`: no other rule is asked.
        """
        watcher = None
        for entry in self._about(frame.direction, frame.header.api_key):
            watches = isinstance(entry.rule.action, Watch)
            if (only_watched and not watches) or not entry.concerns(frame):
                continue
            if not watches:
                return Judgement(entry, entry.rule.name)
            watcher = watcher or entry.rule.name
        return _PASSES if watcher is None else Judgement(None, watcher)

    def _about(self, direction: Direction, api_key: int) -> tuple[LaidRule[Held], ...]:
        found = self._by_api.get((direction, api_key))
        if found is None:
            found = tuple(e for e in self._laid.values() if e.matcher.may_fit(direction, api_key))
            self._by_api[direction, api_key] = found
        return found
