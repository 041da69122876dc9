"""What people see: one page, one JUnit file, a few lines on the terminal."""
