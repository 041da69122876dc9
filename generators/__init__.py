"""Histories made up from a seed, right or with lies planted, to see a checker pass and fire."""
