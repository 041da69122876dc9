"""Checks of the controller's decisions and of the nodes' reactions to them."""
