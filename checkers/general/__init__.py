"""Checks of any system: what its processes say of themselves."""
