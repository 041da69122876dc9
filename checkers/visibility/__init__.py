"""What brokers show of the cluster's metadata, against what was written and shown before."""
