"""What goes wrong, and when: schedules as data, faults with proof, random mixes from a seed."""
