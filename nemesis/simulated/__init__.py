"""The wire of a simulated cluster: the rules, the tape and the partitions of the real one."""
