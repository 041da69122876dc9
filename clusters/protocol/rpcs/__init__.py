"""The tables of RPCs, by who sends the request."""
