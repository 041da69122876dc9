"""Control groups: how a node is given little processor time, or little memory."""
