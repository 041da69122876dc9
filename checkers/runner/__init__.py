"""How tasks run and how sealed tables reach them: what knows Spark stands here alone."""
