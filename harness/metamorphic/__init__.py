"""Tests of the checks on stored runs: changes that no check may call, and planted violations."""
