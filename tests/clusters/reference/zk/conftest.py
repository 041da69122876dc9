"""Put this folder on the path: the tests of a broker and of its controller share its double."""
