"""Put this folder on the path: the tests of the codec and of the shell share its samples."""
