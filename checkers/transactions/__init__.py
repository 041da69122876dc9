"""Checks of transactions: each is read whole or not at all, and none blocks readers for good."""
