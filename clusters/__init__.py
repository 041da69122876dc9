"""What is tested, and where its nodes run."""
