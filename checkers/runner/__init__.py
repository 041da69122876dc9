"""The runner of tasks and the reader of sealed tables: the only package that uses Spark."""
