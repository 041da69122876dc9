"""`python -m fencepost.clusters.reference --config FILE`: run one node of the reference cluster."""

import argparse
import sys
import traceback
from pathlib import Path

from fencepost.clusters.reference.shell.process_log import say
from fencepost.clusters.reference.shell.properties import read_properties
from fencepost.history.failure import HarnessError
from fencepost.history.program import without_hypothesis


def main() -> int:
    """Run the node until it ends; its exit code: 0, or 1 with a line in the log that says why."""
    parser = argparse.ArgumentParser(
        prog="python -m fencepost.clusters.reference", description=__doc__
    )
    parser.add_argument("--config", required=True, type=Path, help="the node's properties file")
    config = parser.parse_args().config
    try:
        reason = _run(config)
    except HarnessError as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 -- a broken node ends here, its trace in the log
        traceback.print_exc(file=sys.stdout)
        reason = f"the node is broken: {error!r}"
    if reason:
        say("ERROR", reason)
    return 1 if reason else 0


def _run(config: Path) -> str:
    settings = read_properties(config)
    without_hypothesis()
    from fencepost.clusters.reference.shell.process import run  # noqa: PLC0415

    return run(settings)


if __name__ == "__main__":
    sys.exit(main())
