"""What frames say: kio's entities as columns of the table `wire`, by API."""
