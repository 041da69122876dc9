"""The metadata quorum: pull-based Raft (KIP-595) between voters, and observers that follow it."""
