"""The timeline of a run in the browser: events in typed arrays, and the page that draws them."""

from report.serve.timeline.routes import timeline_routes

__all__ = ["timeline_routes"]
