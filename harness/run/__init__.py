"""One run from scenario to verdict."""
