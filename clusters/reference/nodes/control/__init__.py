"""The active controller: what it decides about brokers, partitions, topics and settings.

A decision is a function of what is committed (`view.View`) and of a request; it returns records and
the answer (`decision.Decision`). Nothing changes but by replaying the records once they are
committed, and there is one undecided batch at a time (`active.ActiveController`). State outside the
log is volatile and begins anew with each active controller: the leases (`sessions`) and what
brokers have acknowledged (`visibility.Visibility`).
"""
