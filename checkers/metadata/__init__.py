"""The metadata log and the tape, read and replayed: what several subjects judge by."""
