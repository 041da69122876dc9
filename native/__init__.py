"""The optional compiled build of the simulator. It is no part of what is installed."""
