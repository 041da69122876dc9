"""Reproductions on disk: one JSON file each, which is complete at any time.

    results/<scenario>/reproductions/<yyyymmddThhmmssZ>.json

The file is replaced, atomically, after every run, so that a series that was interrupted or killed
keeps what it had done. Its keys are the fields of `harness.series.reproduction.Reproduction`;
a reader refuses keys that it does not know and formats that are not its own.
"""

from datetime import datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from fencepost.harness.series.reproduction import FORMAT_VERSION, Reproduction
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError

_SERIES_A_SECOND_MAX = 100
_ADAPTER = TypeAdapter(Reproduction)


def new_reproduction_path(results: Path, scenario: str, at: datetime) -> Path:
    """Return the path of a new file for a series that starts `at` (UTC).

    Raises HarnessError if the disk refuses.
    """
    return new_series_path(results, scenario, at, folder="reproductions")


def new_series_path(results: Path, scenario: str, at: datetime, *, folder: str) -> Path:
    """Return the path of a new file in this folder of the scenario's results.

    Raises HarnessError if the disk refuses.
    """
    directory = results / scenario / folder
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HarnessError(f"cannot make {directory}: {error.strerror}") from error
    name = f"{at:%Y%m%dT%H%M%SZ}"
    for attempt in range(_SERIES_A_SECOND_MAX):
        path = directory / f"{name}-{attempt:02}.json" if attempt else directory / f"{name}.json"
        if not path.exists():
            return path
    raise HarnessError(f"more than {_SERIES_A_SECOND_MAX} series in one second: {directory}/{name}")


def write_reproduction(path: Path, reproduction: Reproduction) -> None:
    """Replace the file at `path`, atomically. Raises HarnessError if the disk refuses."""
    write_atomically(path, _ADAPTER.dump_json(reproduction, indent=2) + b"\n")


def read_reproduction(path: Path) -> Reproduction:
    """Return the series at `path`.

    Raise HarnessError if it is missing, torn or of another format.
    """
    try:
        reproduction = _ADAPTER.validate_json(path.read_bytes())
    except OSError as error:
        raise HarnessError(f"cannot read {path}: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise HarnessError(
            f"{path} is not the file of a reproduction: {place}: {first['msg']}"
        ) from error
    if reproduction.format_version != FORMAT_VERSION:
        raise HarnessError(
            f"{path} has format {reproduction.format_version}, expected {FORMAT_VERSION}"
        )
    return reproduction
