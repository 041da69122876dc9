"""An oracle over a simulated cluster: it sees all nodes, and says at which step a rule broke.

It shares no code with the nodes: what it knows of the cluster it keeps in ghosts of its own, made
from notes, messages and disks. It is quick enough to look at every step of every run, so that a
series of thousands of seeds stores the histories of those alone that are worth a look. The verdict
over a stored history is the checkers'.
"""
