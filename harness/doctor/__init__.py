"""What this machine can do, and the removal of what runs have left on it."""
