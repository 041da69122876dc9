"""The reference cluster: our own KRaft controllers and brokers, sans-IO, and as processes."""
