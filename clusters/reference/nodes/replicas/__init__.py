"""A broker's replicas: their logs, leading and following, and proposals of ISRs."""
