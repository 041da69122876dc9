"""A world in one thread, from one seed: hosts, their disks and clocks, and the network between."""
