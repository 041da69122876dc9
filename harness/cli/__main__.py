"""`python -m harness.cli`: the same as `fencepost`, where the script is not on the path."""

from harness.cli.main import main

main()
