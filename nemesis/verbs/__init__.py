"""The verbs of a play, one file each; `registry` finds them."""
