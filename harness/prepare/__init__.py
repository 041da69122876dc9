"""The preparation of a run: hosts, disks, releases, and the refusal of what cannot run."""
