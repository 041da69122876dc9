"""One thing that `fencepost doctor` looked at."""

from dataclasses import asdict, dataclass

__all__ = ["Finding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was looked at, what was found, and the way out where something lacks."""

    what: str
    ok: bool
    found: str
    way_out: str = ""
    needed: bool = True
    """Whether nothing runs without it; what is not needed opens further words and flags."""
    faults: tuple[str, ...] = ()
    """The faults of a mix that take it: possible here if it is ok, and else not."""

    def as_data(self) -> dict[str, object]:
        """For JSON."""
        return asdict(self)
