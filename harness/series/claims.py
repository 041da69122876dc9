"""Claims that no series of a scenario proves, each with the command that does, and their records.

`results/claims.toml` lists them:

    [harness-kills]
    says = "What was recorded before the harness was killed with -9 can be judged, 20 times of 20"
    command = "pytest -q tests/harness/test_whole_run.py -k killed_with_9"

The command proves its claim by exit code 0. `fencepost claim NAME` runs it from the checkout and
stores what came of it as `results/track-record/claims/NAME.json`, in the place of the record
before: command, date, machine, version, exit code, and the last lines that it said. A record of
other words or of another command than the list's proves nothing. `docs/claims.md` has the table.
"""

import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Final

from pydantic import ConfigDict, TypeAdapter, ValidationError

from fencepost.harness.machine import machine_facts
from fencepost.harness.scenario.validation import build
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError, SpecError, UsageError
from fencepost.report.notation import length

CLAIMS_BEGIN: Final = "<!-- claims: `make docs` writes it from results/claims.toml -->"
CLAIMS_END: Final = "<!-- end of the claims -->"
FORMAT_VERSION: Final = 1
_GIB: Final = 1 << 30
_LINES: Final = 5
_STRICT: Final = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence, and what proves it."""

    says: str
    command: str
    """The words as of a shell, without expansions; its programs are those beside this Python."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRecord:
    """The result of a claim's command."""

    __pydantic_config__ = _STRICT

    format_version: int = FORMAT_VERSION
    claim: str
    says: str
    command: str
    started_at: str
    """The time of its start: UTC, ISO 8601."""
    seconds: float
    fencepost_version: str
    machine: Mapping[str, str]
    exit_code: int
    last_lines: tuple[str, ...]

    def proves(self, claim: Claim) -> bool:
        """Return whether it is a success of this claim's command."""
        return self.exit_code == 0 and (self.says, self.command) == (claim.says, claim.command)


def read_claims(path: Path) -> Mapping[str, Claim]:
    """Return the list, by name.

    Raise UsageError, with the place, for an entry that cannot be a claim.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}") from error
    claims = {}
    for name, table in tables.items():
        try:
            claims[name] = build(Claim, table)
        except SpecError as error:
            raise UsageError(f"{path}: {name}: {error.message}") from error
    return claims


def prove(name: str, claim: Claim, *, say: Callable[[str], None]) -> ClaimRecord:
    """Run the claim's command to its end, each line of it said as it comes."""
    started, began_s = datetime.now(UTC), time.monotonic()
    last: deque[str] = deque(maxlen=_LINES)
    with subprocess.Popen(
        shlex.split(claim.command),
        env={**os.environ, "PATH": _path()},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            say(line.rstrip("\n"))
            last.extend(filter(None, [line.rstrip()]))
    return ClaimRecord(
        claim=name,
        says=claim.says,
        command=claim.command,
        started_at=started.isoformat(timespec="seconds"),
        seconds=round(time.monotonic() - began_s, 1),
        fencepost_version=version("fencepost"),
        machine=machine_facts(),
        exit_code=process.returncode,
        last_lines=tuple(last),
    )


def write_record(record: ClaimRecord, directory: Path) -> Path:
    """Store it, in the place of the one before; raise HarnessError if the disk refuses."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{record.claim}.json"
    write_atomically(path, TypeAdapter(ClaimRecord).dump_json(record, indent=2) + b"\n")
    return path


def read_record(name: str, directory: Path) -> ClaimRecord | None:
    """Return the record of a claim, if there is one; raise HarnessError if it cannot be read."""
    path = directory / f"{name}.json"
    if not path.exists():
        return None
    try:
        record = TypeAdapter(ClaimRecord).validate_json(path.read_bytes())
    except ValidationError as error:
        raise HarnessError(
            f"{path} is not the record of a claim: {error.errors()[0]['msg']}"
        ) from error
    if record.format_version != FORMAT_VERSION:
        raise HarnessError(f"{path} has format {record.format_version}, expected {FORMAT_VERSION}")
    return record


def claims_table(claims: Mapping[str, Claim], directory: Path) -> str:
    """Return all claims as Markdown, and the proof of each."""
    head = "| claim | proved by | |\n|---|---|---|"
    rows = (_row(name, claim, read_record(name, directory)) for name, claim in claims.items())
    return "\n".join([head, *rows]) + "\n"


def _row(name: str, claim: Claim, record: ClaimRecord | None) -> str:
    if record is None or not record.proves(claim):
        standing = f"**no record**: `fencepost claim {name}`"
    else:
        day = datetime.fromisoformat(record.started_at)
        memory_gib = int(record.machine["memory_bytes"]) / _GIB
        standing = (
            f"{day.day} {day:%B %Y}, {record.machine['cores']} cores, {memory_gib:.0f} GiB, "
            f"{length(record.seconds * 1e9)}: `{record.last_lines[-1]}`"
        )
    return f"| {claim.says} | `{claim.command}` | {standing} |"


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
