"""What is brought before anything starts: Java, jars, caches, archives of classes."""
