"""`fencepost …` in a process of its own, whose nights start `night_child.py` for their runs."""

import sys
from functools import partial
from pathlib import Path

from fencepost.harness.cli import night_course
from fencepost.harness.cli.main import main
from fencepost.harness.series.night_child import ChildRuns

CHILD = Path(__file__).with_name("night_child.py")

if __name__ == "__main__":
    fake = partial(ChildRuns, program=(sys.executable, str(CHILD)))
    night_course.ChildRuns = fake  # type: ignore[assignment,misc]  # for this process alone
    main(sys.argv[1:])
