"""The command line: words and flags to calls, results to lines, JSON and exit codes."""
