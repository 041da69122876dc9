"""`python -m fencepost`: the command line."""

from fencepost.harness.cli.main import main

if __name__ == "__main__":
    main()
