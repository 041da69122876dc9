"""Checks of what must hold in a recorded history; they run on Spark, without a cluster."""
