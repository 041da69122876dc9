// Two timelines with one axis: both move together, each around its own first difference.

import { Timeline } from "./timeline.js";

const roots = [...document.querySelectorAll("[data-timeline]")];
const timelines = roots.map((root) => new Timeline(root));
const centres = roots.map((root) => Number(root.dataset.centre || 0));
window.fencepostTimelines = timelines;

timelines.forEach((timeline, number) => {
  timeline.onview = ({ view }) => {
    const other = 1 - number;
    const by = centres[other] - centres[number];
    if (timelines[other].end) timelines[other].look(view.from + by, view.to + by, true);
  };
});
const half = 5e8;
for (const [number, timeline] of timelines.entries()) {
  timeline
    .load()
    .then(() => {
      if (!roots[number].dataset.centre) return;
      timeline.cursor = centres[number];
      timeline.look(centres[number] - half, centres[number] + half, true);
    })
    .catch((error) => timeline.note(`The timeline cannot be shown: ${error.message}`, true));
}
