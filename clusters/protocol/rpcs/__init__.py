"""The tables of RPCs, by who asks them."""
