"""The reference cluster in virtual time: `clusters.port.Cluster` over a simulated world."""
