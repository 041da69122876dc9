// Draws a run on a canvas: by counts of pixel columns from afar, event by event from near.

import { KINDS, seek } from "./data.js";

export const GUTTER = 168;
export const HEAD = 44;
const HEIGHTS = { node: 30, link: 20, client: 18, log: 22 };
const SINGLE_MAX = 1500;
const BARS_MAX = 3000;
const LEVELS = 7;
const FONT = "12px system-ui, sans-serif";
const SMALL = "10.5px system-ui, sans-serif";
const STEPS = [1, 2, 5];

/** Return the rows of a picture: `{code, kind, name, y, height}` by lane, and their whole height. */
export function layout(lanes, wanted) {
  const rows = [];
  let y = HEAD;
  for (const kind of ["node", "log", "link", "client"]) {
    let first = true;
    lanes.forEach((lane, code) => {
      if (lane.kind !== kind || !wanted(lane, code)) return;
      if (first && rows.length) y += 8;
      first = false;
      const height = HEIGHTS[kind];
      rows.push({ code, kind, name: kind === "log" ? "metadata log" : lane.name, y, height });
      y += height + 2;
    });
  }
  return { rows, height: y + 6 };
}

/** Return the colours of the page, by role, as they are now. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const found = {};
  for (const role of ["page", "card", "sunken", "line", "text", "quiet", "link", "ok", "info", "fail", "invalid", "unknown", "p99", "records", "disturbed", "valid"]) {
    found[role] = style.getPropertyValue(`--${role}`).trim() || "#888";
  }
  return found;
}

function rgb(colour) {
  const number = parseInt(colour.slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.pen = canvas.getContext("2d", { alpha: false });
    this.strip = document.createElement("canvas");
    this.refresh();
  }

  refresh() {
    this.colours = colours();
    this.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  }

  resize(width, height) {
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.width = width;
    this.height = height;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    this.pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  x(ns) {
    return GUTTER + ((ns - this.from) / (this.to - this.from)) * (this.width - GUTTER);
  }

  /** Draw `scene`: its view, rows, overview, events (or null), pins, the selection. */
  draw(scene) {
    const { pen, colours: c } = this;
    this.from = scene.view.from;
    this.to = scene.view.to;
    this.rowOf = new Map(scene.rows.map((row) => [row.code, row]));
    this.byName = new Map(scene.rows.filter((row) => row.kind !== "link").map((row) => [row.name, row]));
    pen.fillStyle = c.card;
    pen.fillRect(0, 0, this.width, this.height);
    this.drawRows(scene);
    pen.save();
    pen.beginPath();
    pen.rect(GUTTER, 0, this.width - GUTTER, this.height);
    pen.clip();
    this.drawGrid();
    this.drawFaults(scene);
    const events = scene.events;
    let single = false;
    if (events) {
      const first = events.seek(events.all, this.from);
      const last = events.seek(events.all, this.to);
      single = last - first <= SINGLE_MAX;
      if (single) this.drawSingle(scene, first, last);
      else this.drawDensity(scene, (row) => this.columns(events, row));
      this.drawBars(scene, events, single);
    } else {
      this.drawDensity(scene, (row) => this.bucketed(scene.overview, row));
      this.drawBars(scene, scene.bars, false);
    }
    this.drawPins(scene);
    this.drawSelected(scene);
    pen.restore();
    this.single = single;
  }

  drawRows(scene) {
    const { pen, colours: c } = this;
    pen.font = FONT;
    pen.textBaseline = "middle";
    for (const row of scene.rows) {
      pen.fillStyle = row.code === scene.lane ? c.line : c.sunken;
      pen.fillRect(0, row.y, this.width, row.height);
      pen.fillStyle = c.text;
      pen.font = row.kind === "node" ? FONT : SMALL;
      pen.fillText(fitted(pen, row.name, GUTTER - 16), 8, row.y + row.height / 2 + 0.5);
    }
  }

  drawGrid() {
    const { pen, colours: c } = this;
    const wide = this.width - GUTTER;
    const step = niceStep((this.to - this.from) / Math.max(2, wide / 110));
    const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step) - 1e-9)));
    pen.strokeStyle = c.line;
    pen.fillStyle = c.quiet;
    pen.font = SMALL;
    pen.lineWidth = 1;
    pen.beginPath();
    for (let at = Math.ceil(this.from / step) * step; at <= this.to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.moveTo(x, 16);
      pen.lineTo(x, this.height);
      pen.fillText(`${(at / 1e9).toFixed(digits)} s`, x + 4, 9);
    }
    pen.stroke();
  }

  drawFaults(scene) {
    const { pen } = this;
    const last = new Map();
    pen.font = SMALL;
    for (const fault of scene.faults) {
      if (fault.end < this.from || fault.begin > this.to) continue;
      const left = Math.max(GUTTER - 2, this.x(fault.begin));
      const right = Math.min(this.width, Math.max(left + 2, this.x(fault.end)));
      const colour = this.dark ? fault.dark : fault.light;
      for (const target of fault.targets) {
        const row = this.byName.get(target);
        if (!row) continue;
        // From afar thousands of faults share a pixel column: those that add nothing are left out.
        const layer = `${target} ${fault.rule}`;
        const drawn = last.get(layer) ?? -1;
        if (right <= drawn + 1) continue;
        last.set(layer, right);
        pen.fillStyle = colour;
        // A rule of the wire shows in what it did to frames; the node itself is not broken.
        if (!fault.rule) {
          pen.globalAlpha = fault.effect === null ? 0.1 : 0.24;
          pen.fillRect(left, row.y, right - left, row.height);
          pen.globalAlpha = 1;
        }
        pen.fillRect(left, row.y + (fault.rule ? 3 : 0), right - left, fault.rule ? 1 : 2);
        if (right - left > 44 && !fault.rule) {
          pen.fillStyle = this.colours.text;
          pen.fillText(fitted(pen, fault.kind, right - left - 8), left + 4, row.y + row.height - 7);
        }
      }
    }
  }

  /** Return the events, and the odd ones, of each pixel column of a lane. */
  columns(events, row) {
    const wide = Math.ceil(this.width - GUTTER);
    const counts = new Uint32Array(wide);
    const odd = new Uint32Array(wide);
    const step = (this.to - this.from) / (this.width - GUTTER);
    for (const [places, into] of [[events.byLane[row.code], counts], [events.oddByLane[row.code], odd]]) {
      let low = events.seek(places, this.from);
      for (let column = 0; column < wide && low < places.length; column++) {
        const next = seek(events.time, places, low, this.from + (column + 1) * step);
        into[column] = next - low;
        low = next;
      }
    }
    return { counts, odd, most: 0 };
  }

  /** The same of a whole run's counts, whose buckets may be wider or narrower than a pixel. */
  bucketed(overview, row) {
    const wide = Math.ceil(this.width - GUTTER);
    const { buckets, end } = overview.header;
    const counts = new Uint32Array(wide);
    const odd = new Uint32Array(wide);
    const step = (this.to - this.from) / (this.width - GUTTER);
    const width = (end + 1) / buckets;
    for (let column = 0; column < wide; column++) {
      const first = Math.max(0, Math.floor((this.from + column * step) / width));
      const last = Math.min(buckets - 1, Math.floor((this.from + (column + 1) * step) / width));
      for (let bucket = first; bucket <= last; bucket++) {
        counts[column] += overview.counts[row.code * buckets + bucket];
        odd[column] += overview.odd[row.code * buckets + bucket];
      }
    }
    return { counts, odd };
  }

  drawDensity(scene, of) {
    const wide = Math.ceil(this.width - GUTTER);
    const found = scene.rows.map(of);
    let most = 1;
    for (const { counts } of found) for (const count of counts) if (count > most) most = count;
    // One row of pixels a lane, stretched to its height: no rectangle is drawn for a column.
    const image = new ImageData(wide, Math.max(1, 2 * scene.rows.length));
    const pixels = new Uint32Array(image.data.buffer);
    const plain = this.shades(this.colours.ok, 1);
    const strange = this.shades(this.colours.disturbed, 2);
    const scale = (LEVELS - 1) / Math.log(most + 1);
    found.forEach(({ counts, odd }, place) => {
      for (let column = 0; column < wide; column++) {
        if (counts[column]) pixels[2 * place * wide + column] = plain[Math.round(Math.log(counts[column] + 1) * scale)];
        if (odd[column]) pixels[(2 * place + 1) * wide + column] = strange[LEVELS - 1];
      }
    });
    this.strip.width = wide;
    this.strip.height = image.height;
    this.strip.getContext("2d").putImageData(image, 0, 0);
    this.pen.imageSmoothingEnabled = false;
    scene.rows.forEach((row, place) => {
      const top = row.height > 24 ? 5 : 3;
      this.pen.drawImage(this.strip, 0, 2 * place, wide, 1, GUTTER, row.y + top, wide, row.height - top - 7);
      this.pen.drawImage(this.strip, 0, 2 * place + 1, wide, 1, GUTTER, row.y + row.height - 6, wide, 4);
    });
  }

  shades(colour) {
    const [red, green, blue] = rgb(colour);
    return Uint32Array.from({ length: LEVELS }, (_, level) => {
      const alpha = Math.round(255 * (0.42 + (0.55 * level) / (LEVELS - 1)));
      return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    });
  }

  middle(code) {
    const row = this.rowOf.get(code);
    return row ? row.y + row.height / 2 : null;
  }

  drawSingle(scene, first, last) {
    const { pen, colours: c } = this;
    const events = scene.events;
    const few = last - first < 260;
    pen.font = SMALL;
    // Operations reach from their call to their return, and so may begin before the picture does.
    const reach = Math.max(0, first - 400);
    for (let number = reach; number < last; number++) {
      const place = events.all[number];
      const time = events.time[place];
      const took = events.took[place];
      const x = this.x(time);
      const until = took < 0 ? x : Math.max(x, this.x(time + took));
      if (until < GUTTER) continue;
      const row = this.rowOf.get(events.lane[place]);
      const kind = KINDS[events.kind[place]];
      const odd = events.odd[events.fate[place]];
      if (kind === "operation" && row) {
        const outcome = scene.words.fates[events.fate[place]];
        pen.fillStyle = c[outcome] || c.quiet;
        pen.fillRect(x, row.y + 3, Math.max(2, until - x), row.height - 6);
        if (until - x > 40) {
          pen.fillStyle = c.card;
          pen.fillText(fitted(pen, scene.words.whats[events.what[place]], until - x - 6), Math.max(x, GUTTER) + 3, row.y + row.height / 2);
        }
      } else if (kind === "record" && row) {
        this.diamond(x, row.y + row.height / 2, 4, c.records);
      } else {
        const y = this.middle(events.lane[place]);
        const end = this.middle(events.peer[place]);
        const colour = odd ? c.disturbed : kind === "request" ? c.ok : c.quiet;
        if (y !== null && end !== null) this.arrow(x, y, until, end, { colour, lost: took < 0, response: kind === "response" });
        const link = this.rowOf.get(events.link[place]);
        if (link) {
          pen.fillStyle = colour;
          pen.fillRect(x - 1, link.y + 4, 2, link.height - 8);
        }
        if (few && y !== null && this.roomFor(scene, number, x)) {
          pen.fillStyle = c.text;
          pen.fillText(scene.words.whats[events.what[place]], x + 4, y - 8);
        }
      }
    }
  }

  /** Return whether the name of an event does not meet that of the next one of its lane. */
  roomFor(scene, number, x) {
    const { all, lane, time } = scene.events;
    const mine = lane[all[number]];
    for (let next = number + 1; next < Math.min(all.length, number + 40); next++) {
      if (lane[all[next]] === mine) return this.x(time[all[next]]) - x > 92;
    }
    return true;
  }

  arrow(x, y, toX, toY, { colour, lost, response }) {
    const { pen } = this;
    // A frame that never arrived ends half way, in a cross.
    const endX = lost ? x + 8 : toX;
    const endY = lost ? y + (toY - y) * 0.4 : toY;
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = response ? 1 : 1.4;
    pen.setLineDash(response ? [4, 3] : []);
    pen.beginPath();
    pen.moveTo(x, y);
    pen.lineTo(endX, endY);
    pen.stroke();
    pen.setLineDash([]);
    pen.beginPath();
    if (lost) {
      pen.moveTo(endX - 4, endY - 4);
      pen.lineTo(endX + 4, endY + 4);
      pen.moveTo(endX + 4, endY - 4);
      pen.lineTo(endX - 4, endY + 4);
      pen.stroke();
    } else {
      const angle = Math.atan2(endY - y, endX - x);
      pen.moveTo(endX, endY);
      for (const side of [0.42, -0.42]) pen.lineTo(endX - 7 * Math.cos(angle + side), endY - 7 * Math.sin(angle + side));
      pen.fill();
    }
  }

  /** Draw what was held: a bar while it waited, and the arrow by which it was delivered. */
  drawBars(scene, events, single) {
    if (!events) return;
    const { pen, colours: c } = this;
    const drawn = new Map();
    let count = 0;
    for (const place of events.bars) {
      const time = events.time[place];
      if (time > this.to) break;
      const until = time + events.took[place];
      if (until < this.from) continue;
      const row = this.rowOf.get(events.link[place]) || this.rowOf.get(events.lane[place]);
      if (!row || count > BARS_MAX) continue;
      const x = Math.max(GUTTER - 2, this.x(time));
      const end = Math.min(this.width + 2, Math.max(x + 2, this.x(until)));
      if (end <= (drawn.get(row.code) ?? -1) + 1) continue;
      drawn.set(row.code, end);
      count++;
      const y = row.y + row.height / 2;
      pen.fillStyle = c.disturbed;
      pen.globalAlpha = 0.55;
      pen.fillRect(x, y - 5, end - x, 10);
      pen.globalAlpha = 1;
      pen.fillRect(x, y - 5, 2, 10);
      const name = scene.words.whats[events.what[place]];
      if (end - x > 60) {
        pen.font = SMALL;
        pen.fillStyle = c.text;
        const fate = scene.words.fates[events.fate[place]];
        pen.fillText(fitted(pen, `${name} ${fate}`, end - x - 10), x + 6, y + 0.5);
      }
      const peer = this.middle(events.peer[place]);
      if (!single && peer !== null && end - x > 12 && end < this.width) {
        this.arrow(end, row.kind === "link" ? this.middle(events.lane[place]) ?? y : y, end + 8, peer, { colour: c.disturbed, lost: scene.words.fates[events.fate[place]] !== "released", response: false });
      }
    }
  }

  drawPins(scene) {
    const { pen, colours: c } = this;
    const inks = { finding: c.invalid, story: c.unknown, step: c.quiet };
    const last = {};
    for (const [number, pin] of scene.pins.entries()) {
      const x = this.x(pin.t);
      if (x < GUTTER - 6 || x > this.width + 6) continue;
      const selected = number === scene.pin;
      if (!selected && x - (last[pin.kind] ?? -99) < 3) continue;
      last[pin.kind] = x;
      pen.fillStyle = pen.strokeStyle = inks[pin.kind];
      const top = pin.kind === "step" ? 32 : 20;
      if (pin.kind === "step") pen.fillRect(x - 1, top, 2, 8);
      else this.diamond(x, top + 6, selected ? 7 : 5, inks[pin.kind]);
      if (selected) this.line(x, inks[pin.kind]);
    }
  }

  drawSelected(scene) {
    const { events, selected } = scene;
    if (scene.cursor !== null) this.line(this.x(scene.cursor), this.colours.link);
    if (!events || selected === null) return;
    const row = this.rowOf.get(events.lane[selected]);
    const x = this.x(events.time[selected]);
    if (!row || x < GUTTER) return;
    const { pen } = this;
    pen.strokeStyle = this.colours.text;
    pen.lineWidth = 2;
    pen.beginPath();
    pen.arc(x, row.y + row.height / 2, 7, 0, 7);
    pen.stroke();
  }

  line(x, colour) {
    const { pen } = this;
    pen.strokeStyle = colour;
    pen.lineWidth = 1;
    pen.setLineDash([3, 3]);
    pen.beginPath();
    pen.moveTo(Math.round(x) + 0.5, 16);
    pen.lineTo(Math.round(x) + 0.5, this.height);
    pen.stroke();
    pen.setLineDash([]);
  }

  diamond(x, y, size, colour) {
    const { pen } = this;
    pen.fillStyle = colour;
    pen.beginPath();
    pen.moveTo(x, y - size);
    pen.lineTo(x + size, y);
    pen.lineTo(x, y + size);
    pen.lineTo(x - size, y);
    pen.fill();
  }
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  const times = [...STEPS, 10].find((one) => one * power >= least);
  return times * power;
}

function fitted(pen, text, width) {
  if (width < 8) return "";
  if (pen.measureText(text).width <= width) return text;
  let kept = text;
  while (kept.length > 1 && pen.measureText(`${kept}…`).width > width) kept = kept.slice(0, -1);
  return kept.length > 1 ? `${kept}…` : "";
}
