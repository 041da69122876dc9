"""The kinds of fault, one file each: what it does, how its effect is seen, what heals it."""
