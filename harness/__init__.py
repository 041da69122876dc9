"""How it is put together: run, replay, check, clean, and the command line."""
