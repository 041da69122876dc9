"""The gate over nights: which findings are new, ongoing or resolved; whether a night passes."""
