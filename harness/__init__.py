"""The assembly of the product: run, replay, check, clean, and the command line."""
