"""The content of frames: kio's entities as columns of the table `wire`, by API."""
