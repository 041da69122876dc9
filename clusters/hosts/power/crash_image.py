"""The content of a disk after a loss of power, by what `follow.c` noted: the rest is undone.

Run as a script where a node's files are, by any Python from 3.9 on, with nothing of the project
beside it. No other process may use the directory meanwhile.

The model is that of a file system with a journal (ext4, xfs):

- Bytes of a file are durable once an fsync of that file that began after the write has returned.
- Changes of names (create, rename, unlink, mkdir, rmdir, link) and of sizes (truncate) become
  durable together and in order, with the next fsync of anything in the directory.
- Nothing else is durable. A kernel writes back on its own what is some seconds old; here it never
  does, which it need not either. A name may thus be durable and its file empty.
- Bytes that are written through a mapping are taken for written back at once, as a kernel may do:
  they are not lost below the durable size of their file.
- A size that grows by `truncate` after bytes that were not synced grows with the file's next fsync.

So all that is left after a loss could have been left by a real one, and what was synced is there.
"""

import json
import os
import random
import shutil
import stat
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Optional

STATE, JOURNAL, KEPT = "state", "journal", "kept"
FILES_MAX = 65536
PAGE_BYTES = 4096
TORN_MAX = 3

_HEAD = struct.Struct("=7Q")
_HEAD_BYTES = 512 * 8
_FILE = struct.Struct("=3Q2I")
_NOTE = struct.Struct("=2I5Q2I")
_COPY_BYTES = 1 << 20

CREATE, MKDIR, RENAME, UNLINK, RMDIR, SHRINK, EXTEND, OVERWRITE = range(1, 9)
_OF_BYTES = (SHRINK, EXTEND, OVERWRITE)
_BEYOND = {
    1: f"more than {FILES_MAX * 3 // 4} files were written",
    2: "a process called sync or syncfs",
    3: "a file was moved into the directory or out of it",
    4: "a note could not be written",
    5: "two files were exchanged",
}


class Note(NamedTuple):
    """One change, as it was noted before it was done. Fields: see `struct note`."""

    kind: int
    seq: int
    inode: int = 0
    offset: int = 0
    length: int = 0
    durable: int = 0
    source: str = ""
    target: str = ""


class File(NamedTuple):
    """The known facts of a file."""

    durable: int
    """Its durable size, if all changes of sizes that were noted are durable."""
    synced_seq: int
    """Overwrites that were noted before are durable."""


class DirectoryState(NamedTuple):
    """The known facts of a directory."""

    beyond: int
    next_seq: int
    durable_seq: int
    """Changes of names and sizes that were noted before are durable."""
    processes: int
    files: Mapping[int, File]
    """The files by inode."""


class Rewrite(NamedTuple):
    """Put back bytes of a file: the first `length` of those that were kept under that name."""

    inode: int
    at: int
    length: int
    kept: str


class Restoration(NamedTuple):
    """The changes to the bytes of files: rewrites in their order, then the largest size of each."""

    rewrites: tuple[Rewrite, ...]
    sizes: Mapping[int, int]


class PowerLoss(NamedTuple):
    """The details of a loss of power."""

    processes: int
    """The number of processes followed since the directory was settled."""
    torn: str
    """The writes that had reached the disk by chance, in words."""


def names_to_undo(notes: Iterable[Note], state: DirectoryState) -> tuple[Note, ...]:
    """The changes of names that are not durable, the last one first."""
    volatile = [
        note for note in notes if note.kind not in _OF_BYTES and note.seq >= state.durable_seq
    ]
    return tuple(reversed(volatile))


def bytes_to_restore(notes: Iterable[Note], state: DirectoryState) -> Restoration:
    """Return what is to be put back into files, and how large each of them is then."""
    sizes = {inode: file.durable for inode, file in state.files.items()}
    rewrites = []
    cut: dict[int, int] = {}  # by durable changes of sizes that came later
    for note in reversed([one for one in notes if one.kind in _OF_BYTES]):
        inode, durable = note.inode, note.seq < state.durable_seq
        if inode not in state.files:
            continue
        if note.kind == OVERWRITE:
            end = min(note.offset + note.length, cut.get(inode, sys.maxsize))
            if end > note.offset and note.seq >= state.files[inode].synced_seq:
                rewrites.append(Rewrite(inode, note.offset, end - note.offset, f"d{note.seq}"))
        elif durable and note.kind == SHRINK:
            cut[inode] = min(note.offset, cut.get(inode, sys.maxsize))
        elif not durable:
            sizes[inode] = note.durable
            if note.kind == SHRINK:
                length = note.durable - note.offset
                rewrites.append(Rewrite(inode, note.offset, length, f"m{note.seq}"))
    return Restoration(tuple(rewrites), sizes)


def settle(home: Path) -> None:
    """Make all that the directory holds durable from now on; no process may use it."""
    home.mkdir(parents=True, exist_ok=True)
    for name, size in ((STATE, _HEAD_BYTES + FILES_MAX * _FILE.size), (JOURNAL, 0)):
        # Never the old file: a process that is not quite gone may have it mapped.
        draft = home / f".{name}"
        draft.write_bytes(b"")
        os.truncate(draft, size)
        draft.replace(home / name)
    shutil.rmtree(home / KEPT, ignore_errors=True)
    (home / KEPT).mkdir()


def lose_power(followed: Path, home: Path, seed: Optional[str] = None) -> PowerLoss:  # noqa: UP045 -- 3.9
    """Take from the directory what was not durable; `seed`: parts of some logs are, by chance.

    Raises ValueError if something was done to it that cannot be followed.
    """
    state = _state(home)
    if state.beyond:
        raise ValueError(f"cannot tell which data are durable: {_BEYOND[state.beyond]}")
    notes = tuple(_notes(home))
    torn = ""
    if seed is not None:
        state, torn = _torn(followed, state, seed)
    for note in names_to_undo(notes, state):
        _undo(note, home / KEPT / f"m{note.seq}")
    paths = _paths(followed)
    restoration = bytes_to_restore(notes, state)
    for rewrite in restoration.rewrites:
        if rewrite.inode in paths:
            _put_back(paths[rewrite.inode], rewrite, home / KEPT / rewrite.kept)
    for inode, size in restoration.sizes.items():
        if inode in paths and paths[inode].stat().st_size > size:
            os.truncate(paths[inode], size)
    settle(home)
    return PowerLoss(state.processes, torn)


def _state(home: Path) -> DirectoryState:
    content = (home / STATE).read_bytes()
    beyond, next_seq, durable_seq, _, _, _, processes = _HEAD.unpack_from(content)
    pages = (content[at : at + PAGE_BYTES] for at in range(_HEAD_BYTES, len(content), PAGE_BYTES))
    files = {
        inode: File(durable, synced_seq)
        for page in pages
        if any(page)  # most are empty
        for inode, durable, synced_seq, _, _ in _FILE.iter_unpack(page)
        if inode > 1
    }
    return DirectoryState(beyond, next_seq, durable_seq, processes, files)


def _notes(home: Path) -> Iterator[Note]:
    """Yield all notes that were written whole: what the last, torn one announces was not done."""
    content = (home / JOURNAL).read_bytes()
    at = 0
    while at + _NOTE.size <= len(content):
        size, kind, seq, inode, offset, length, durable, source_bytes, _ = _NOTE.unpack_from(
            content, at
        )
        if at + size > len(content):
            return
        names = content[at + _NOTE.size : at + size]
        source, target = map(os.fsdecode, (names[:source_bytes], names[source_bytes:]))
        yield Note(kind, seq, inode, offset, length, durable, source, target)
        at += size


def _torn(followed: Path, state: DirectoryState, seed: str) -> tuple[DirectoryState, str]:
    """The state if the kernel had written parts of up to three logs, and names and sizes."""
    draw = random.Random(seed)  # noqa: S311 -- a choice, no secret
    logs = sorted(
        path for path in followed.rglob("*.log") if path.is_file() and path.stat().st_size
    )
    files, said = dict(state.files), []
    for path in draw.sample(logs, min(len(logs), draw.randint(1, TORN_MAX))):
        status = path.stat()
        drawn = draw.randint(1, status.st_size)
        head = min(status.st_size, -(-drawn // PAGE_BYTES) * PAGE_BYTES)
        said.append(f"{head} bytes of {path.relative_to(followed)}")
        inode = status.st_ino
        if inode in files and head > files[inode].durable:
            files[inode] = files[inode]._replace(durable=head)
    words = f"written back before: {', '.join(said) or 'nothing'}"
    return state._replace(durable_seq=state.next_seq, files=files), words


def _undo(note: Note, kept: Path) -> None:
    """Undo a change of a name. It may not have been done: its process died first."""
    source, target = Path(note.source), Path(note.target)
    if note.kind == CREATE and os.path.lexists(target):
        target.unlink()
    elif note.kind == MKDIR and os.path.lexists(target):
        shutil.rmtree(target)
    elif note.kind == UNLINK and os.path.lexists(kept):
        kept.replace(source)
    elif note.kind == RMDIR and not os.path.lexists(source):
        _make_directory(source, mode=note.length)
    elif note.kind == RENAME and not os.path.lexists(source):
        target.rename(source)
        if note.length == 1:
            kept.replace(target)
        elif note.length:
            _make_directory(target, mode=note.length - 2)


def _make_directory(path: Path, *, mode: int) -> None:
    path.mkdir()
    path.chmod(mode)


def _paths(followed: Path) -> dict[int, Path]:
    """A path of each file, by inode."""
    found = {}
    for path in followed.rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            found[status.st_ino] = path
    return found


def _put_back(path: Path, rewrite: Rewrite, kept: Path) -> None:
    """Write only what differs: an index is mostly a hole, and stays one."""
    mode = stat.S_IMODE(path.stat().st_mode)
    path.chmod(mode | stat.S_IRUSR | stat.S_IWUSR)
    with kept.open("rb") as reader, path.open("r+b") as file:
        file.truncate(max(rewrite.at + rewrite.length, path.stat().st_size))
        at, left = rewrite.at, rewrite.length
        while left and (part := reader.read(min(left, _COPY_BYTES))):
            file.seek(at)
            if file.read(len(part)) != part:
                file.seek(at)
                file.write(part)
            at, left = at + len(part), left - len(part)
    path.chmod(mode)


def main() -> None:
    """`settle HOME`, or `lose FOLLOWED HOME [SEED]`: how that went, as JSON on stdout."""
    word, *rest = sys.argv[1:]
    try:
        if word == "settle":
            settle(Path(rest[0]))
            json.dump({}, sys.stdout)
        else:
            json.dump(lose_power(Path(rest[0]), Path(rest[1]), *rest[2:])._asdict(), sys.stdout)
    except (OSError, ValueError) as error:
        json.dump({"error": str(error)}, sys.stdout)


if __name__ == "__main__":
    main()
