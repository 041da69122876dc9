"""The `fencepost` command: dispatch, and how errors become one line and an exit code.

0 valid, 1 invalid, 2 unknown, 254 wrong use, 255 the harness failed. Over several runs: 1 if any is
invalid, else 255, else 2, else 0. Results go to standard output, everything else to standard error.
"""

import sys
import traceback
from collections.abc import Sequence

import click

from harness.cli.bench import bench
from harness.cli.history import history
from harness.cli.machine import clean, doctor
from harness.cli.reproduce import reproduce, track_record
from harness.cli.run import replay, run
from harness.cli.scenarios import scenarios
from harness.cli.stored import check, report
from history.failure import HarnessError, UsageError

__all__ = ["FAILED", "WRONG_USE", "cli", "main"]

WRONG_USE = 254
FAILED = 255


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="fencepost", prog_name="fencepost")
def cli() -> None:
    """Break a cluster while clients use it, and prove what it kept and what it lost.

    Exit codes: 0 valid, 1 invalid, 2 unknown, 254 wrong use, 255 the harness failed.
    """


for command in (
    run,
    reproduce,
    replay,
    check,
    report,
    scenarios,
    track_record,
    history,
    doctor,
    clean,
    bench,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    sys.exit(_exit_code(arguments))


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
        return _fail(str(error), WRONG_USE)
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
