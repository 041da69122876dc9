"""Speed, measured on the machine at hand: printed, never asserted."""
