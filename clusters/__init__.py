"""The systems under test, and the hosts on which their nodes run."""
