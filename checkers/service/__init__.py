"""Checks of the service that clients got, against the bounds that a scenario promises."""
