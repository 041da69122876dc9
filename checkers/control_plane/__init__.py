"""What the controller decides, and what the nodes make of it."""
