"""This machine, before and after runs."""
