"""What must hold: checks of a recorded history, on Spark, without a cluster."""
