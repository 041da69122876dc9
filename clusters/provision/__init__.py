"""Everything that must be there before a cluster starts: Java, jars, caches, class archives."""
