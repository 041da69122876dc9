"""The things provided before anything starts: Java, jars, caches, archives of classes."""
