"""The language of scenarios: files to checked values, and what a run is asked for."""
