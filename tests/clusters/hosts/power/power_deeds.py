"""Does to files what it is told, a line of JSON each, and says so; run as a script of its own.

A deed is a list: a word, and what it is done to. Paths are relative to the working directory.
"""

import json
import os
import sys


def write(path: str, at: int, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    os.pwrite(descriptor, content.encode(), at)
    os.close(descriptor)


def append(path: str, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    os.write(descriptor, content.encode())
    os.close(descriptor)


def create(path: str) -> None:
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))


def write_synced(path: str, content: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_DSYNC)
    os.write(descriptor, content.encode())
    os.close(descriptor)


def sync(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


DEEDS = {
    "write": write,
    "append": append,
    "create": create,
    "write_synced": write_synced,
    "sync": sync,
    "truncate": os.truncate,
    "rename": os.rename,
    "unlink": os.unlink,
    "mkdir": os.mkdir,
    "rmdir": os.rmdir,
    "link": os.link,
}

if __name__ == "__main__":
    for line in sys.stdin:
        word, *rest = json.loads(line)
        try:
            DEEDS[word](*rest)
        except OSError as error:
            answer: int | None = error.errno
        else:
            answer = None
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
