"""The code that executors need, as one file: the packages `checkers` and `history` with their data.

An executor of a cluster has Python and the dependencies, and nothing of ours: no checkout, no
PYTHONPATH, another working directory. So the packages travel with the application, as a zip that
Python imports from. Its name is a digest of what is in it: one of other code has another name, and
no executor takes the one for the other. What is read as data from a package is read through
`importlib.resources`, which looks into zips, too.

The archive is the same, byte by byte, for the same code: its entries are sorted and bear no dates.
"""

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

__all__ = ["PACKAGES", "code_archive"]

PACKAGES: Final = ("checkers", "history")
"""The packages that a task may import: checkers import nothing else of ours."""

_LEFT_BEHIND: Final = ("__pycache__",)
_DIGEST_CHARACTERS: Final = 16


def code_archive(directory: Path) -> Path:
    """Return the archive of the code that runs here, written into `directory`.

    Raises OSError if the disk refuses.
    """
    content = {name: data for package in PACKAGES for name, data in _content(package)}
    path = directory / f"fencepost-{_digest(content)}.zip"
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for name, data in content.items():
            archive.writestr(ZipInfo(name), data, ZIP_DEFLATED)
    return path


def _content(package: str) -> Iterator[tuple[str, bytes]]:
    return _files_below(files(package), package)


def _files_below(folder: Traversable, path: str) -> Iterator[tuple[str, bytes]]:
    for entry in sorted(folder.iterdir(), key=lambda one: one.name):
        if entry.name in _LEFT_BEHIND:
            continue
        name = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _files_below(entry, name)
        else:
            yield name, entry.read_bytes()


def _digest(content: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, data in content.items():
        digest.update(f"{name}\0{len(data)}\0".encode())
        digest.update(data)
    return digest.hexdigest()[:_DIGEST_CHARACTERS]
