// The timeline of one run: what is loaded, what is shown, and all that a reader can do.

import { decode, Events, KINDS, seconds, sentence, span } from "./data.js";
import { GUTTER, layout, Picture } from "./draw.js";
import { matching, pairsOf, parse, QueryError } from "./query.js";

const PAIRS_MAX = 500;
const FETCHED_MAX = 600_000;
const SPAN_MIN = 2_000;
const FRAMES_KEPT = 4096;

export class Timeline {
  /** `root` holds the parts by `data-part`; `root.dataset.base` is where the run's data are. */
  constructor(root) {
    this.root = root;
    this.base = root.dataset.base;
    this.parts = {};
    for (const part of root.querySelectorAll("[data-part]")) this.parts[part.dataset.part] = part;
    this.picture = new Picture(this.parts.canvas);
    this.events = null;
    this.selected = this.cursor = this.lane = null;
    this.pin = -1;
    this.query = { x: [], y: null };
    this.allLinks = false;
    this.view = { from: 0, to: 1 };
    this.onview = null;
    /** The milliseconds that the last draws took, for measurements. */
    this.drawn = [];
    this.pending = 0;
  }

  async load() {
    const answer = await fetch(`${this.base}/overview`);
    if (!answer.ok) throw new Error(await answer.text());
    const { header, columns } = decode(await answer.arrayBuffer());
    this.overview = { header, counts: columns.counts, odd: columns.odd };
    this.bars = new Events({ header, columns });
    this.end = header.end;
    this.view = { from: 0, to: this.end };
    this.place();
    this.listPins();
    this.listen();
    this.draw();
    performance.mark("timeline-drawn");
    this.say(`${header.events.toLocaleString("en")} events on ${this.rows.length} lanes, over ${seconds(this.end, 1)}.`);
    for (const remark of header.remarks) this.append(this.parts.remarks, "p", remark);
    this.whole = header.events <= header.eventsMax;
    await this.fetchEvents(true);
  }

  /** Fetch single events: all of them if there is room for that, else those of the view. */
  async fetchEvents(first = false) {
    if (this.whole) {
      if (!first) return;
      this.take(decode(await (await fetch(`${this.base}/events?from=0&to=${this.end}`)).arrayBuffer()), 0, this.end);
      return;
    }
    const { from, to } = this.view;
    if (this.span && this.span.from <= Math.max(0, from) && this.span.to >= Math.min(this.end, to)) return;
    if (this.counted(from, to) > FETCHED_MAX) {
      if (this.events) {
        this.events = this.span = null;
        this.selected = null;
        this.draw();
      }
      this.note("Counts of events: zoom in to see single ones. Filter and search need them, too.");
      return;
    }
    const half = this.counted(from - (to - from) / 2, to + (to - from) / 2) > FETCHED_MAX ? 0 : (to - from) / 2;
    const [begin, end] = [Math.max(0, Math.floor(from - half)), Math.min(this.end, Math.ceil(to + half))];
    const asked = (this.asked = {});
    this.note("Reading the events of this span…");
    const body = decode(await (await fetch(`${this.base}/events?from=${begin}&to=${end}`)).arrayBuffer());
    if (asked !== this.asked) return;
    if (body.header.many) this.note("There are too many events here: zoom in to see single ones.");
    else this.take(body, begin, end);
  }

  take(body, from, to) {
    const kept = this.selected === null || !this.events ? null : { kind: this.events.kind[this.selected], row: this.events.row[this.selected] };
    this.events = new Events(body);
    this.span = { from, to };
    this.selected = kept ? this.find(kept.kind, kept.row) : null;
    this.place();
    this.filter();
    this.root.dataset.ready = "events";
    if (this.wanted) this.show(this.wanted);
  }

  /** Return about how many events a span has, by the counts. */
  counted(from, to) {
    const { buckets, end, lanes } = this.overview.header;
    const width = (end + 1) / buckets;
    const [first, last] = [Math.max(0, Math.floor(from / width)), Math.min(buckets - 1, Math.floor(to / width))];
    let found = 0;
    lanes.forEach((lane, code) => {
      if (lane.kind === "link") return;
      for (let bucket = first; bucket <= last; bucket++) found += this.overview.counts[code * buckets + bucket];
    });
    return found;
  }

  words() {
    return (this.events || this.bars).header;
  }

  /** Lay the lanes out: those of all nodes, of clients, and of the links on which a rule acted. */
  place() {
    const { lanes, buckets, counts, odd } = { ...this.overview.header, ...this.overview };
    const any = (array, code) => {
      for (let at = code * buckets; at < (code + 1) * buckets; at++) if (array[at]) return true;
      return false;
    };
    this.seen ??= lanes.map((lane, code) => ({ some: any(counts, code), odd: any(odd, code) }));
    const wanted = (lane, code) => lane.kind === "node" || (lane.kind !== "" && this.seen[code].some && (lane.kind !== "link" || this.allLinks || this.seen[code].odd));
    const { rows, height } = layout(lanes, wanted);
    this.rows = rows;
    this.picture.resize(this.parts.canvas.parentElement.clientWidth, height);
  }

  filter() {
    const status = this.parts.status;
    this.parts.results.hidden = true;
    try {
      this.query = parse(this.parts.filter.value);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.note(error.message, true);
      return;
    }
    if (!this.events) {
      if (this.parts.filter.value) this.note("Filter and search need single events: zoom in.", true);
      return;
    }
    try {
      if (this.query.y) {
        this.events.choose(null);
        this.search();
      } else {
        const chosen = matching(this.events, this.query.x);
        this.events.choose(chosen);
        const [some, all] = [this.events.all.length, this.events.count].map((one) => one.toLocaleString("en"));
        this.note(chosen ? `${some} of ${all} events match` : `${all} events`);
      }
      this.bars.choose(null);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      this.note(error.message, true);
      return;
    }
    status.classList.remove("wrong");
    this.draw();
    this.tellHash();
  }

  search() {
    const { pairs, count } = pairsOf(this.events, this.query, PAIRS_MAX);
    const part = this.parts.results;
    const list = part.querySelector("ol");
    list.replaceChildren();
    for (const [x, y] of pairs) {
      const [before, after] = [this.events.told(x), this.events.told(y)];
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = `${seconds(before.time)} ${before.what} ${before.where} … ${span(after.time - before.time)} later ${after.what} ${after.where}${after.key ? ` ${after.key}` : ""}`;
      button.addEventListener("click", () => this.jumpToPair(x, y));
      this.append(list, "li").append(button);
    }
    part.hidden = false;
    const more = count > pairs.length ? `; the first ${pairs.length} are listed` : "";
    this.note(count === 1 ? "1 pair" : `${count.toLocaleString("en")} pairs${more}`);
  }

  jumpToPair(x, y) {
    const [from, to] = [this.events.time[x], this.events.time[y]];
    const margin = Math.max((to - from) * 0.25, 1e6);
    this.look(from - margin, to + margin);
    this.select(x);
  }

  // The view.

  look(from, to, quiet = false) {
    const least = SPAN_MIN;
    let wide = Math.min(Math.max(to - from, least), this.end * 1.02);
    const middle = (from + to) / 2;
    from = Math.min(Math.max(middle - wide / 2, -0.01 * this.end), this.end * 1.01 - wide);
    this.view = { from, to: from + wide };
    this.redraw();
    if (quiet) return;
    this.tellHash();
    if (this.onview) this.onview(this);
  }

  zoom(times, at = this.cursor !== null && this.cursor > this.view.from && this.cursor < this.view.to ? this.cursor : (this.view.from + this.view.to) / 2) {
    const { from, to } = this.view;
    this.look(at - (at - from) * times, at + (to - at) * times);
  }

  pan(share) {
    const { from, to } = this.view;
    const by = (to - from) * share;
    this.look(from + by, to + by);
  }

  redraw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
    clearTimeout(this.settling);
    if (!this.whole) this.settling = setTimeout(() => this.fetchEvents().catch((error) => this.note(String(error), true)), 180);
  }

  draw() {
    const begun = performance.now();
    this.picture.draw({
      view: this.view, rows: this.rows, overview: this.overview, events: this.events, bars: this.bars,
      faults: this.overview.header.faults, pins: this.overview.header.pins, pin: this.pin,
      selected: this.selected, cursor: this.cursor, lane: this.lane, words: this.words(),
    });
    this.drawn.push(performance.now() - begun);
    if (this.drawn.length > FRAMES_KEPT) this.drawn.shift();
    this.parts.span.textContent = `${seconds(Math.max(0, this.view.from))} to ${seconds(Math.min(this.end, this.view.to))}`;
  }

  // Events.

  find(kind, row) {
    const { events } = this;
    for (let place = 0; place < events.count; place++) if (events.row[place] === row && events.kind[place] === kind) return place;
    return null;
  }

  select(place) {
    this.selected = place;
    const told = this.events.told(place);
    this.lane = this.events.lane[place];
    this.cursor = told.time;
    if (told.time < this.view.from || told.time > this.view.to) {
      const half = (this.view.to - this.view.from) / 2;
      this.look(told.time - half, told.time + half);
    }
    this.redraw();
    this.say(sentence(told));
    this.detail(told);
    this.tellHash();
  }

  async detail(told) {
    const part = this.parts.fields;
    const asked = (this.detailed = {});
    const answer = await fetch(`${this.base}/row?kind=${told.kind}&row=${told.row}`);
    const rows = answer.ok ? await answer.json() : [];
    if (asked !== this.detailed) return;
    part.replaceChildren();
    this.append(part, "h3", `${told.what} ${told.kind}`);
    this.append(part, "p", told.where).className = "note";
    rows.forEach((row, number) => {
      if (number) this.append(part, "h4", `item ${row.item ?? number}`);
      const table = this.append(part, "table");
      for (const [name, value] of Object.entries(row)) {
        if (number && row[name] === rows[0][name]) continue;
        const line = this.append(table, "tr");
        this.append(line, "th", name.replace(/_ns$/, "").replaceAll("_", " ")).scope = "row";
        const time = name.endsWith("_ns");
        this.append(line, "td", time ? seconds(value, 9) : Array.isArray(value) ? `[${value.join(", ")}]` : String(value));
      }
    });
    if (!rows.length) this.append(part, "p", "The run's tables have no row of this event.");
  }

  /** Select the event of the lane (of all, without one) that comes `step` after the selected one. */
  step(step) {
    if (!this.events) return;
    const places = this.lane === null ? this.events.all : this.events.byLane[this.lane];
    const from = this.selected === null ? this.view.from : this.events.time[this.selected];
    let at = this.events.seek(places, from);
    if (this.selected !== null) {
      while (at < places.length && places[at] < this.selected) at++;
      at += places[at] === this.selected ? step : step > 0 ? 0 : -1;
    } else if (step < 0) at -= 1;
    // The rows of one frame are one event to a reader.
    while (this.selected !== null && places[at] !== undefined && this.events.kind[places[at]] < 2 && this.events.row[places[at]] === this.events.row[this.selected]) at += step;
    const lane = this.lane;
    if (places[at] === undefined) this.say(step > 0 ? "No later event on this lane." : "No earlier event on this lane.");
    else {
      this.select(places[at]);
      if (lane !== null) this.lane = lane;
    }
  }

  stepLane(step) {
    const at = this.rows.findIndex((row) => row.code === this.lane);
    const row = this.rows[Math.min(this.rows.length - 1, Math.max(0, at + step))];
    this.lane = row.code;
    this.selected = null;
    this.redraw();
    const count = this.events ? this.events.byLane[row.code].length.toLocaleString("en") : "";
    this.say(`Lane ${row.name}${count ? `, ${count} events` : ""}`);
  }

  goToPin(number) {
    const pins = this.overview.header.pins;
    if (!pins.length) return this.say("This run has no pins.");
    this.pin = Math.min(pins.length - 1, Math.max(0, number));
    const pin = pins[this.pin];
    const half = Math.min((this.view.to - this.view.from) / 2, 5e8);
    this.look(pin.t - half, pin.t + half);
    this.parts.pins.querySelectorAll("button").forEach((button, place) => {
      if (place === this.pin) {
        button.setAttribute("aria-current", "true");
        button.scrollIntoView({ block: "nearest" });
      } else button.removeAttribute("aria-current");
    });
    this.say(`${pin.kind} at ${seconds(pin.t)}: ${pin.text}`);
    const frame = pin.row !== null && this.events ? this.find(0, pin.row) ?? this.find(1, pin.row) : null;
    if (frame !== null) this.select(frame);
    else this.cursor = pin.t;
  }

  listPins() {
    const list = this.parts.pins;
    const pins = this.overview.header.pins;
    pins.forEach((pin, number) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = `pin ${pin.kind}`;
      this.append(button, "span", pin.kind).className = "kind";
      this.append(button, "span", seconds(pin.t)).className = "time";
      this.append(button, "span", pin.text);
      button.addEventListener("click", () => this.goToPin(number));
      this.append(list, "li").append(button);
    });
    if (!pins.length) this.append(list, "li", "Nothing was found, and the run has no story.").className = "note";
  }

  // What a reader does.

  listen() {
    const { canvas, filter, stage } = this.parts;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      const x = event.clientX - box.left;
      return { x, y: event.clientY - box.top, ns: this.view.from + ((x - GUTTER) / (box.width - GUTTER)) * (this.view.to - this.view.from) };
    };
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { ...at(event), view: { ...this.view }, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return;
      const by = event.clientX - canvas.getBoundingClientRect().left - drag.x;
      if (Math.abs(by) > 3) drag.moved = true;
      if (!drag.moved) return;
      const ns = (by / (this.picture.width - GUTTER)) * (drag.view.to - drag.view.from);
      this.look(drag.view.from - ns, drag.view.to - ns);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.click(at(event));
      drag = null;
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.shiftKey && !event.metaKey && Math.abs(event.deltaX) <= Math.abs(event.deltaY) && !event.altKey) {
        // The plain wheel zooms only once the picture has the focus: else it scrolls the page.
        if (document.activeElement !== stage) return;
      }
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 900);
      else this.zoom(Math.exp(event.deltaY / 400), at(event).ns);
    }, { passive: false });
    stage.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("keydown", (event) => {
      if (event.key === "/" && event.target !== filter) {
        event.preventDefault();
        filter.focus();
        filter.select();
      }
    });
    filter.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.filter();
      if (this.query.y) this.parts.results.querySelector("button")?.focus();
    });
    let typing = 0;
    filter.addEventListener("input", () => {
      clearTimeout(typing);
      typing = setTimeout(() => this.filter(), 250);
    });
    filter.addEventListener("keydown", (event) => {
      if (event.key === "Escape") stage.focus();
    });
    for (const button of this.root.querySelectorAll("button[data-do]")) {
      button.addEventListener("click", () => ({ in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.look(0, this.end) })[button.dataset.do]());
    }
    this.parts.links.addEventListener("change", (event) => {
      this.allLinks = event.target.checked;
      this.place();
      this.draw();
    });
    new ResizeObserver(() => {
      this.place();
      this.draw();
    }).observe(canvas.parentElement);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.picture.refresh();
      this.draw();
    });
  }

  click({ x, y, ns }) {
    this.parts.stage.focus({ preventScroll: true });
    if (y < 44) {
      const pins = this.overview.header.pins;
      let best = -1;
      pins.forEach((pin, number) => {
        if (Math.abs(this.picture.x(pin.t) - x) < 8 && (best < 0 || Math.abs(pin.t - ns) < Math.abs(pins[best].t - ns))) best = number;
      });
      if (best >= 0) return this.goToPin(best);
    }
    const row = this.rows.find((one) => y >= one.y && y < one.y + one.height);
    if (row) this.lane = row.code;
    this.cursor = ns;
    this.redraw();
    if (!row || x < GUTTER || !this.events) return;
    const near = this.nearest(row, ns);
    if (near !== null) this.select(near);
    else this.say(`${seconds(ns)}, ${row.name}: no event here`);
  }

  /** Return the event of a lane that is nearest to a moment, at most some pixels away. */
  nearest(row, ns) {
    const { events } = this;
    const reach = ((this.view.to - this.view.from) / (this.picture.width - GUTTER)) * 7;
    let best = null;
    let least = Infinity;
    const consider = (place, distance) => {
      if (distance <= reach && distance < least) [best, least] = [place, distance];
    };
    const covers = (place) => {
      const until = events.time[place] + Math.max(0, events.took[place]);
      return Math.min(Math.abs(events.time[place] - ns), ns >= events.time[place] && ns <= until ? reach * 0.9 : Infinity);
    };
    const places = events.byLane[row.code];
    const at = events.seek(places, ns);
    for (let near = Math.max(0, at - 60); near < Math.min(places.length, at + 60); near++) consider(places[near], covers(places[near]));
    // Arrows end on the lane of their receiver, and bars lie on their link, however long ago they began.
    for (const place of events.bars) {
      if (events.time[place] > ns + reach) break;
      if (events.link[place] === row.code || events.lane[place] === row.code) consider(place, covers(place));
      if (events.peer[place] === row.code) consider(place, Math.abs(events.time[place] + events.took[place] - ns));
    }
    if (best === null && row.kind === "node") {
      const around = events.seek(events.all, ns);
      for (let near = Math.max(0, around - 200); near < Math.min(events.all.length, around + 200); near++) {
        const place = events.all[near];
        if (events.peer[place] === row.code) consider(place, Math.abs(events.time[place] + Math.max(0, events.took[place]) - ns));
      }
    }
    return best;
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      ArrowLeft: () => this.pan(event.shiftKey ? -0.9 : -0.15),
      ArrowRight: () => this.pan(event.shiftKey ? 0.9 : 0.15),
      ArrowUp: () => this.stepLane(-1),
      ArrowDown: () => this.stepLane(1),
      "+": () => this.zoom(0.6),
      "=": () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6),
      Home: () => this.look(0, this.end),
      n: () => this.step(1),
      p: () => this.step(-1),
      N: () => this.goToPin(this.pin + 1),
      P: () => this.goToPin(this.pin - 1),
      Enter: () => this.parts.details.focus(),
      Escape: () => {
        this.selected = this.cursor = this.lane = null;
        this.redraw();
      },
    };
    const act = acts[event.key];
    if (!act || event.target !== this.parts.stage) return;
    event.preventDefault();
    act();
  }

  // Words, and the link to this moment.

  say(text) {
    this.parts.said.textContent = text;
  }

  note(text, wrong = false) {
    this.parts.status.textContent = text;
    this.parts.status.classList.toggle("wrong", wrong);
  }

  append(parent, tag, text = "") {
    const made = document.createElement(tag);
    if (text) made.textContent = text;
    parent.append(made);
    return made;
  }

  tellHash() {
    if (!this.root.dataset.linked) return;
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const { from, to } = this.view;
      const parts = new URLSearchParams({ t: ((from + to) / 2e9).toFixed(6), span: ((to - from) / 1e9).toPrecision(6) });
      if (this.parts.filter.value) parts.set("filter", this.parts.filter.value);
      if (this.selected !== null) parts.set("at", `${KINDS[this.events.kind[this.selected]]}-${this.events.row[this.selected]}`);
      this.mine = `#${parts}`;
      history.replaceState(null, "", this.mine);
    }, 150);
  }

  /** Show what a link says: `t` in seconds, and maybe `span`, `filter`, and `at`, an event. */
  show(hash) {
    const parts = new URLSearchParams(hash.replace(/^#/, ""));
    const t = Number(parts.get("t"));
    this.wanted = "";
    if (parts.has("filter")) {
      this.parts.filter.value = parts.get("filter");
      this.filter();
    }
    if (parts.has("t") && Number.isFinite(t)) {
      const wide = Number(parts.get("span")) > 0 ? Number(parts.get("span")) * 1e9 : Math.min(this.end, 1e9);
      if (!parts.has("span")) this.cursor = t * 1e9;
      this.look(t * 1e9 - wide / 2, t * 1e9 + wide / 2);
    }
    const [kind, row] = (parts.get("at") || "").split("-");
    if (!KINDS.includes(kind)) return;
    const place = this.events ? this.find(KINDS.indexOf(kind), Number(row)) : null;
    if (place !== null) this.select(place);
    else if (!this.events) this.wanted = hash;
  }
}
