"use strict";
// While a night goes on, its page asks for itself every second and takes over what has changed:
// row by row, so that neither the focus nor the place of the reader is lost. Without it the page
// is as of when it was loaded.
const PERIOD_MS = 1000;
const parts = ["head", "progress", "gate-says", "left-out"];
let stamp = null;

const adopt = (found) => {
  const next = new DOMParser().parseFromString(found, "text/html");
  for (const id of parts) {
    const [here, there] = [document.getElementById(id), next.getElementById(id)];
    if (!there) continue;
    if (here.innerHTML !== there.innerHTML) here.replaceChildren(...there.childNodes);
    here.toggleAttribute("data-live", there.hasAttribute("data-live"));
  }
  const rows = document.getElementById("rows");
  for (const row of [...next.querySelectorAll("#rows > tr")].reverse()) {
    const known = document.getElementById(row.id);
    if (!known) rows.prepend(row);
    else if (known.outerHTML !== row.outerHTML) known.replaceWith(row);
  }
};

const isLive = () => document.getElementById("progress").hasAttribute("data-live");

const look = async () => {
  try {
    const headers = stamp ? { "If-None-Match": stamp } : {};
    const answer = await fetch(location.pathname, { headers, cache: "no-store" });
    if (answer.status === 200) {
      stamp = answer.headers.get("ETag");
      adopt(await answer.text());
    }
  } catch {
    // The server was ended, and may be started again.
  }
  if (isLive()) setTimeout(look, PERIOD_MS);
};

if (isLive()) setTimeout(look, PERIOD_MS);
