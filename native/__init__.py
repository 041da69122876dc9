"""The optional compiled build of the simulator, which is not installed with the product."""
