"""Faults and their timing: schedules as data, faults with proof, random mixes from a seed."""
