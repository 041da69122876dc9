"""The timeline of a run in the browser: events in typed arrays, and the page that draws them."""
