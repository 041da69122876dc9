"""The `fencepost` command: dispatch, and how errors become one line and an exit code.

A command's module is imported when the command is asked for: all of them take two seconds.

0 valid, 1 invalid, 2 unknown, 254 wrong use, 255 the harness failed. Over several runs: 1 if any is
invalid, else 255, else 2, else 0. Results go to standard output, everything else to standard error.
"""

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

import click

from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.program import IMPORT_ROOT, without_hypothesis

WRONG_USE = 254
FAILED = 255

_MODULES: Final[Mapping[str, str]] = {
    "bench": "fencepost.bench.command",
    "check": "fencepost.harness.cli.stored",
    "claim": "fencepost.harness.cli.claim",
    "clean": "fencepost.harness.cli.machine",
    "doctor": "fencepost.harness.cli.machine",
    "gate": "fencepost.harness.cli.gate",
    "history": "fencepost.harness.cli.history",
    "night": "fencepost.harness.cli.night",
    "replay": "fencepost.harness.cli.run",
    "report": "fencepost.harness.cli.page",
    "reproduce": "fencepost.harness.cli.reproduce",
    "results": "fencepost.harness.cli.results",
    "run": "fencepost.harness.cli.run",
    "scenarios": "fencepost.harness.cli.scenarios",
    "selftest": "fencepost.harness.cli.simulate",
    "serve": "fencepost.harness.cli.serve",
    "simulate": "fencepost.harness.cli.simulate",
    "start": "fencepost.harness.cli.start",
    "stop": "fencepost.harness.cli.start",
    "track-record": "fencepost.harness.cli.reproduce",
}
"""The module of each command."""


class _Commands(click.Group):
    """A group that knows its commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all commands, by name."""
        del ctx
        return sorted(_MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name; None if there is none."""
        del ctx
        if cmd_name not in _MODULES:
            return None
        module = import_module(_MODULES[cmd_name])
        command: Any = getattr(module, cmd_name.replace("-", "_"))
        assert isinstance(command, click.Command)
        return command


@click.group(
    cls=_Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="fencepost", prog_name="fencepost")
def cli() -> None:
    """Break a cluster while clients use it, and prove what it kept and what it lost.

    Exit codes: 0 valid, 1 invalid, 2 unknown, 254 wrong use, 255 the harness failed.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code; without `arguments`, as a process of its own."""
    if arguments is None:
        without_hypothesis()
    _keep_to_this_code()
    sys.exit(_exit_code(arguments))


def _keep_to_this_code() -> None:
    """Make processes of ours import the code that this one does, wherever they are started.

    Python puts the working directory first for `-m`: a file `history.py` there, or a checkout,
    would be taken for a package of ours.
    """
    root = str(IMPORT_ROOT)
    inherited = os.environ.get("PYTHONPATH", "")
    if root not in inherited.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, inherited]))
    os.environ["PYTHONSAFEPATH"] = "1"


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        code = cli.main(arguments, prog_name="fencepost", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return WRONG_USE
    except click.ClickException as error:
        return _fail(error.format_message(), WRONG_USE, hint=_usage_hint(error))
    except click.Abort as error:  # click's word for a KeyboardInterrupt
        return _fail(str(error.__cause__ or "") or "interrupted", FAILED)
    except UsageError as error:
        for mistake in error.args:
            _fail(str(mistake), WRONG_USE)
        return WRONG_USE
    except HarnessError as error:
        return _fail(str(error), FAILED)
    except BrokenPipeError:
        return FAILED
    except OSError as error:
        return _fail(_os_error(error), FAILED)
    except Exception as error:  # noqa: BLE001  # Python itself would exit with 1, which says "invalid"
        traceback.print_exc()
        return _fail(f"a mistake of Fencepost's own: {type(error).__name__}: {error}", FAILED)
    return code if isinstance(code, int) else 0


def _fail(message: str, code: int, *, hint: str = "") -> int:
    click.echo(f"fencepost: {' '.join(message.split())}{hint}", err=True)
    return code


def _usage_hint(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context is not None else ""


def _os_error(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"
