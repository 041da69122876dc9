"""One thing that `fencepost doctor` looked at."""

from dataclasses import asdict, dataclass

__all__ = ["DoctorFinding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFinding:
    """One ability: its name, what was found, and the remedy if it is missing."""

    what: str
    ok: bool
    found: str
    way_out: str = ""
    needed: bool = True
    """True if every run needs it; an ability that is not needed opens further words and flags."""
    faults: tuple[str, ...] = ()
    """The faults of a mix that take it: possible here if it is ok, and else not."""

    def as_data(self) -> dict[str, object]:
        """Return its fields for JSON."""
        return asdict(self)
