"""Put this folder on the path: the tests of the controller share its desk."""
