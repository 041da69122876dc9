"""The local web page over a directory of results: `fencepost serve`."""
