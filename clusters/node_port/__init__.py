"""The interface between a sans-IO node and its shell: events in, effects out."""
