"""The gate over nights: what is new, what goes on, what is resolved, and whether to go on."""
