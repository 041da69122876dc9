"""A disk of a node's own: a file system on an image, which can lose power, fill up and fail."""
