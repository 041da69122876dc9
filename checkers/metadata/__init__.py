"""Readers of the metadata log and the tape, which the checks of several subjects share."""
