// The page of one run's timeline.

import { Timeline } from "./timeline.js";

const timeline = new Timeline(document.querySelector("[data-timeline]"));
// Measurements and tests look at it; nothing else does.
window.fencepostTimeline = timeline;
timeline.wanted = location.hash;
timeline
  .load()
  .then(() => {
    if (timeline.wanted) timeline.show(timeline.wanted);
  })
  .catch((error) => timeline.note(`The timeline cannot be shown: ${error.message}`, true));
addEventListener("hashchange", () => {
  if (location.hash !== timeline.mine) timeline.show(location.hash);
});
