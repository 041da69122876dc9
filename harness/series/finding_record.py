"""Records of plays that were carried out in virtual time: what the checks told of each seed.

`results/track-record/findings/` has a file a play and condition, which `docs/identities.md` is
drawn from. A play that is carried out again replaces its file, whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fencepost.harness.series.firing import ToldTrial
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError

FORMAT_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingRecord:
    """One play, carried out seed by seed."""

    __pydantic_config__ = ConfigDict(extra="forbid")

    format_version: int = FORMAT_VERSION
    play: str
    made_by: str
    """The condition under which it was carried out (`FiringPlay.made_by`)."""
    command: str
    """The command that repeats it."""
    started_at: str
    """The time of its start: UTC, ISO 8601."""
    fencepost_version: str
    machine: Mapping[str, str]
    trials: tuple[ToldTrial, ...]


def write_finding_record(record: FindingRecord, directory: Path) -> Path:
    """Store it in the place of the one before; raise HarnessError if the disk refuses."""
    path = directory / f"{record.play}-{record.made_by.replace(' ', '-')}.json"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, TypeAdapter(FindingRecord).dump_json(record, indent=1) + b"\n")
    except OSError as error:
        raise HarnessError(f"cannot store the findings of {record.play}: {error}") from error
    return path


def read_finding_records(directory: Path) -> Mapping[tuple[str, str], FindingRecord]:
    """Return the records by play and condition; raise HarnessError if one cannot be read."""
    found = {}
    for path in sorted(directory.glob("*.json")):
        try:
            record = TypeAdapter(FindingRecord).validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise HarnessError(f"{path}: {error}") from error
        found[record.play, record.made_by] = record
    return found
