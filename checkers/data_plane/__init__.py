"""A partition is a log: what polls and sends must agree on."""
