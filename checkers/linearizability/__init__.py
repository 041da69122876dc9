"""The check that histories of plain objects are linearizable, key by key."""
