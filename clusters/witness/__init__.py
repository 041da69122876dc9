"""Metadata logs and replica logs, read from the disks of a stopped or running cluster."""
