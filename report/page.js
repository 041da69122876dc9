"use strict";
// Draws the plots and ties them to the page: colours from its style, legends that hide and show,
// times that zoom. Everything but the plots can be read without it.
(() => {
  const content = document.getElementById("plots-content");
  const places = [...document.querySelectorAll(".place")];
  let plots = null;

  // A tag is `name=value`; a property whose value is a CSS variable takes its colour.
  const pairs = (tags) => (tags ?? []).map((tag) => {
    const cut = tag.indexOf("=");
    return [tag.slice(0, cut), tag.slice(cut + 1)];
  });
  const has = (model, name, value) => pairs(model.tags).some(([n, v]) => n === name && v === value);
  const colours = (tags) => {
    const style = getComputedStyle(document.documentElement);
    return pairs(tags)
      .filter(([, value]) => value.startsWith("--"))
      .map(([name, value]) => [name, style.getPropertyValue(value).trim()]);
  };

  // Before the first drawing, in the document's JSON, so that no plot flashes in wrong colours.
  const paint = (part) => {
    if (typeof part !== "object" || part === null) return;
    if (part.attributes !== undefined) {
      Object.assign(part.attributes, Object.fromEntries(colours(part.attributes.tags)));
    }
    Object.values(part).forEach(paint);
  };

  // And when the reader's preference changes.
  const repaint = () => {
    for (const model of plots.all_models) {
      for (const [name, colour] of colours(model.tags)) model[name] = colour;
    }
  };

  // On a touch screen a drag must scroll the page.
  const freeDrags = () => {
    for (const model of plots.all_models) {
      if (model.type === "BoxZoomTool") model.active = false;
    }
  };

  const draw = async () => {
    const json = JSON.parse(content.textContent);
    paint(json);
    const ids = json.roots.map((root) => root.id);
    const roots = Object.fromEntries(ids.map((id, place) => [id, places[place].id]));
    await Bokeh.embed.embed_items({ plots: json }, [{ docid: "plots", roots, root_ids: ids }]);
    plots = Bokeh.documents.at(-1);
    if (matchMedia("(pointer: coarse)").matches) freeDrags();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
  };

  const timeAxis = () => plots.roots()[0].x_range;

  // All plots share one range; it stays within the run, and keeps its width at its ends.
  const show = (start, width) => {
    const [least, most] = timeAxis().bounds;
    const kept = Math.min(width, most - least);
    const from = Math.min(Math.max(start, least), most - kept);
    timeAxis().setv({ start: from, end: from + kept });
  };

  const turn = {
    earlier: (start, width) => show(start - width / 2, width),
    later: (start, width) => show(start + width / 2, width),
    closer: (start, width) => show(start + width / 4, width / 2),
    whole: () => show(0, Infinity),
  };

  const showMoment = (fromSeconds, toSeconds) => {
    const margin = Math.max(2, toSeconds - fromSeconds);
    show(fromSeconds - margin, toSeconds - fromSeconds + 2 * margin);
    for (const model of plots.all_models) {
      if (has(model, "role", "pointer")) model.location = fromSeconds;
    }
  };

  const toggle = (button) => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", String(shown));
    const { entry, of } = button.dataset;
    plots.roots().forEach((plot, root) => {
      if (of !== undefined && Number(of) !== root) return;
      for (const renderer of plot.renderers) {
        if (has(renderer, "entry", entry)) renderer.visible = shown;
      }
    });
  };

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.textContent);
      button.textContent = "Copied";
    } catch {
      // Without the permission, the text is at least selected.
      getSelection().selectAllChildren(source);
      button.textContent = "Selected";
    }
  };

  // The sequence picture: one stop for the tab key; arrow keys walk through it, down in time.
  const events = [...document.querySelectorAll(".sequence .event")];
  const closer = document.getElementById("closer");
  const lookAt = (event) => {
    closer.textContent = event.querySelector("title").textContent;
    closer.hidden = false;
    for (const each of events) each.tabIndex = each === event ? 0 : -1;
  };
  const stepTo = (event) => {
    event.focus({ preventScroll: true });
    event.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const strides = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 };
  for (const [place, event] of events.entries()) {
    event.addEventListener("focus", () => lookAt(event));
    event.addEventListener("pointerenter", () => lookAt(event));
    event.addEventListener("keydown", (pressed) => {
      const stride = strides[pressed.key];
      if (stride === undefined) return;
      pressed.preventDefault();
      stepTo(events[Math.min(Math.max(place + stride, 0), events.length - 1)]);
    });
  }
  if (events.length > 0) events[0].tabIndex = 0;

  document.addEventListener("click", (event) => {
    const target = event.target.closest("button, a[data-from]");
    if (target === null) return;
    if (target.dataset.copy !== undefined) copy(target);
    if (plots === null) return;
    const { from, to, view } = target.dataset;
    if (from !== undefined) showMoment(Number(from), Number(to));
    if (view !== undefined) turn[view](timeAxis().start, timeAxis().end - timeAxis().start);
    if (target.dataset.entry !== undefined) toggle(target);
  });

  if (content !== null) {
    draw().catch((error) => {
      document.getElementById("plots-failure").textContent =
        `The plots could not be drawn: ${error.message}`;
    });
  }
})();
