"""The reports for people: one page, one JUnit file, a few lines on the terminal."""
