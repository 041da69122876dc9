"""How far consumers are behind what is known."""
