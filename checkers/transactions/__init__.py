"""Transactions: each readable whole or not at all, and none that holds up the readers for good."""
