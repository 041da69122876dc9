"""`fencepost …` in a process of its own, whose nights start `night_child.py` for their runs."""

import sys
from functools import partial
from pathlib import Path

from harness.cli import night_course
from harness.cli.main import main
from harness.series.night_child import ChildRuns

CHILD = Path(__file__).with_name("night_child.py")

if __name__ == "__main__":
    fake = partial(ChildRuns, program=(sys.executable, str(CHILD)))
    night_course.ChildRuns = fake  # type: ignore[assignment,misc]  # for this process alone
    main(sys.argv[1:])
