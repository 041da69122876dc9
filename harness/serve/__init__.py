"""The results behind the web page, read by the harness's own readers."""
