"""Put this folder on the path: the tests of a broker's parts share its world."""
