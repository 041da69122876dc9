"""What the clients do while things go wrong, and how they write it down."""
