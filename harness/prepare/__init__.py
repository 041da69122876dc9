"""What a run needs before it starts: hosts, disks, releases; and what is refused."""
