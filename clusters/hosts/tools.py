"""Tools of the machine (`ip`, `nft`, `tc`), each run to its end with a bound."""

import shutil
import subprocess
from typing import Final

from fencepost.history.failure import HarnessError

_TIMEOUT_S: Final = 30.0
"""The time-out of each: it takes some ms; on a machine that does much else, a second or two."""


def tool(*argv: str, text: str | None = None) -> str:
    """Return the output of the command; `text`: its input.

    Raises HarnessError, with the command and the last it said, if it fails, is not there, or has
    not ended after 30 s.
    """
    command = " ".join(argv)
    try:
        done = subprocess.run(
            argv, input=text, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise HarnessError(f"{command}: had not ended after {_TIMEOUT_S:.0f} s") from None
    except OSError as error:
        raise HarnessError(f"{command}: {error.strerror}") from error
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip()).splitlines()
        raise HarnessError(f"{command}: {said[-1] if said else f'exit code {done.returncode}'}")
    return done.stdout


def tool_missing(*names: str) -> str | None:
    """The first of these tools that this machine has not; None if it has all of them."""
    return next((name for name in names if shutil.which(name) is None), None)
