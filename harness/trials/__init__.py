"""Trials: short simulated runs by the thousand, judged at every step by an oracle.

A run writes a history, which checkers judge; a trial writes nothing, and costs a tenth of a second.
What a trial finds, the run of the same seed shows with all its evidence.
"""
