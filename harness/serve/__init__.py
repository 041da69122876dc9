"""What the web page shows, read from the results by the harness's own readers."""
