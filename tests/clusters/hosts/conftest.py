"""Put this folder on the path: the tests of hosts over SSH share its killed runs."""
