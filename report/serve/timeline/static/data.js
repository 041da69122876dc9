// Bodies of the server as typed arrays, and the events of a run, filtered and by lane.

const ARRAYS = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u4: Uint32Array, u2: Uint16Array, u1: Uint8Array };
export const KINDS = ["request", "response", "operation", "record"];

/** Return `{header, columns}` of a body; the columns lie over it and copy nothing. */
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  let offset = 4 + length;
  for (const { name, type, length: count } of header.columns) {
    columns[name] = new ARRAYS[type](buffer, offset, count);
    offset += Math.ceil((count * ARRAYS[type].BYTES_PER_ELEMENT) / 8) * 8;
  }
  return { header, columns };
}

/** Return the first place from `low` on whose time is not before `time`: by doubling steps. */
export function seek(times, places, low, time) {
  let step = 1;
  let high = low;
  const count = places.length;
  while (high < count && times[places[high]] < time) {
    low = high + 1;
    high += step;
    step *= 2;
  }
  if (high > count) high = count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (times[places[middle]] < time) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The events of a span, in the order of their times, and which of them are shown. */
export class Events {
  constructor({ header, columns }) {
    this.header = header;
    Object.assign(this, columns);
    this.count = columns.time.length;
    const disturbing = new Set(header.disturbing);
    this.disturbing = Uint8Array.from(header.fates, (word) => (disturbing.has(word) ? 1 : 0));
    this.odd = Uint8Array.from(header.fates, (word) => (disturbing.has(word) || word === "fail" || word === "info" ? 1 : 0));
    this.choose(null);
  }

  /** Show the events that `chosen` (one byte an event, or null for all) has. */
  choose(chosen) {
    const { count, lane, link, fate, kind, took } = this;
    const lanes = this.header.lanes.length;
    const sizes = new Uint32Array(lanes);
    const oddSizes = new Uint32Array(lanes);
    let shown = 0;
    let bars = 0;
    for (let place = 0; place < count; place++) {
      if (chosen && !chosen[place]) continue;
      shown++;
      sizes[lane[place]]++;
      const odd = this.odd[fate[place]];
      if (odd) oddSizes[lane[place]]++;
      if (kind[place] < 2) {
        sizes[link[place]]++;
        if (odd) oddSizes[link[place]]++;
        if (this.disturbing[fate[place]] && took[place] > 0) bars++;
      }
    }
    const all = new Uint32Array(shown);
    const held = new Uint32Array(bars);
    this.byLane = Array.from(sizes, (size) => new Uint32Array(size));
    this.oddByLane = Array.from(oddSizes, (size) => new Uint32Array(size));
    sizes.fill(0);
    oddSizes.fill(0);
    shown = bars = 0;
    for (let place = 0; place < count; place++) {
      if (chosen && !chosen[place]) continue;
      all[shown++] = place;
      const odd = this.odd[fate[place]];
      for (let side = 0; side < (kind[place] < 2 ? 2 : 1); side++) {
        const at = side ? link[place] : lane[place];
        this.byLane[at][sizes[at]++] = place;
        if (odd) this.oddByLane[at][oddSizes[at]++] = place;
      }
      if (kind[place] < 2 && this.disturbing[fate[place]] && took[place] > 0) held[bars++] = place;
    }
    this.all = all;
    this.bars = held;
  }

  seek(places, time) {
    return seek(this.time, places, 0, time);
  }

  laneName(code) {
    return this.header.lanes[code].name;
  }


  /** Return the fields of an event for people. */
  told(place) {
    const words = this.header;
    const kind = KINDS[this.kind[place]];
    const took = this.took[place];
    const framed = this.kind[place] < 2;
    const time = this.time[place];
    return {
      kind,
      what: words.whats[this.what[place]],
      where: framed ? words.lanes[this.link[place]].name : words.lanes[this.lane[place]].name,
      key: words.keys[this.key[place]],
      fate: words.fates[this.fate[place]],
      error: words.errors[this.error[place]],
      epoch: this.epoch[place] >= 0 ? String(this.epoch[place]) : "",
      brokerEpoch: words.brokerEpochs[this.brokerEpoch[place]],
      time,
      until: took < 0 ? null : time + took,
      row: this.row[place],
    };
  }
}

/** Return a time of the run in seconds. */
export function seconds(ns, digits = 3) {
  return `${(ns / 1e9).toFixed(digits)} s`;
}

/** Return a length of time for people. */
export function span(ns) {
  if (ns >= 1e9) return `${(ns / 1e9).toFixed(ns >= 1e10 ? 1 : 3)} s`;
  if (ns >= 1e6) return `${(ns / 1e6).toFixed(ns >= 1e7 ? 1 : 2)} ms`;
  return `${(ns / 1e3).toFixed(1)} µs`;
}

/** Return one line about an event. */
export function sentence(told) {
  const parts = [`${told.what} ${told.kind}`, told.where];
  if (told.key) parts.push(told.key);
  parts.push(seconds(told.time));
  const late = told.until !== null && told.until > told.time ? `, ${span(told.until - told.time)} later` : "";
  if (told.fate) parts.push(told.until === null ? `${told.fate}, without an end` : told.fate + late);
  if (told.error && told.error !== "NONE") parts.push(told.error);
  return parts.join(" · ");
}
