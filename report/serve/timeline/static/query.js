// The words of the filter box: which events, or which pairs of them.
//
//   query  = terms [ "before" terms [ "within" LENGTH ] [ "same" ("node" | "key") ] ]
//   terms  = term { term }                  all of them hold
//   term   = [ "-" ] [ field ":" ] value { "," value }      one of the values holds; "-": none
//   field  = "api" | "node" | "key" | "epoch" | "error" | "is"    without one: api
//   LENGTH = number ("ns" | "us" | "ms" | "s" | "m" | "h")

import { KINDS } from "./data.js";

const FIELDS = ["api", "node", "key", "epoch", "error", "is"];
const UNITS = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 6e10, h: 3.6e12 };

export class QueryError extends Error {}

/** Return `{x, y, withinNs, same}`; `y` is null in a plain filter. Throws QueryError. */
export function parse(text) {
  const words = text.trim().split(/\s+/).filter(Boolean);
  const at = words.findIndex((word) => word.toLowerCase() === "before");
  if (at < 0) return { x: words.map(term), y: null, withinNs: Infinity, same: "" };
  const left = words.slice(0, at);
  const right = words.slice(at + 1);
  const query = { x: left.map(term), y: null, withinNs: Infinity, same: "" };
  for (;;) {
    const option = (right[right.length - 2] || "").toLowerCase();
    const value = right[right.length - 1];
    if (option === "within") query.withinNs = lengthNs(value);
    else if (option === "same") query.same = sameAs(value);
    else break;
    right.splice(-2);
  }
  if (!left.length || !right.length) throw new QueryError("“before” stands between two events: AlterPartition before BrokerRegistration");
  query.y = right.map(term);
  return query;
}

function term(word) {
  const not = word.startsWith("-");
  const bare = not ? word.slice(1) : word;
  const colon = bare.indexOf(":");
  const field = colon < 0 ? "api" : bare.slice(0, colon).toLowerCase();
  const known = FIELDS.includes(field);
  // A word with a colon that is no field is a name of its own.
  if (colon >= 0 && !known) throw new QueryError(`“${field}:” is no field; there are ${FIELDS.join(", ")}`);
  const values = (colon < 0 ? bare : bare.slice(colon + 1)).split(",").filter(Boolean);
  if (!values.length) throw new QueryError(`“${word}” names no value`);
  return { field, values, not };
}

function lengthNs(text) {
  const found = /^(\d+(?:\.\d+)?)(ns|us|ms|s|m|h)$/.exec(text);
  if (!found) throw new QueryError(`“${text}” is no length of time; write 500ms or 5s`);
  return Number(found[1]) * UNITS[found[2]];
}

function sameAs(text) {
  const word = text.toLowerCase();
  if (word !== "node" && word !== "key") throw new QueryError("“same” is followed by node or key");
  return word;
}

/** Return which words of a dictionary one of the values names, a byte each. Throws QueryError. */
function named(words, values, what) {
  const found = new Uint8Array(words.length);
  for (const value of values) {
    const tests = [pattern(`^${escaped(value)}$`), pattern(escaped(value))];
    const hit = tests.some((test) => {
      let any = false;
      words.forEach((word, code) => {
        if (word && test.test(word)) any = found[code] = 1;
      });
      return any;
    });
    if (!hit) throw new QueryError(`no ${what} here is named “${value}”`);
  }
  return found;
}

function pattern(text) {
  return new RegExp(text, "i");
}

function escaped(value) {
  return value.replace(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*");
}

/** Return a function of an event's place that says whether the term holds. */
function test(events, { field, values, not }) {
  const holds = plain(events, field, values);
  return not ? (place) => !holds(place) : holds;
}

function plain(events, field, values) {
  const words = events.header;
  if (field === "node") {
    const lanes = named(words.lanes.map((lane) => (lane.kind === "link" ? "" : lane.name)), values, "node or client");
    return (place) => lanes[events.lane[place]] || lanes[events.peer[place]];
  }
  if (field === "epoch") {
    const numbers = new Set(values.map(Number));
    const brokers = Uint8Array.from(words.brokerEpochs, (word) => (values.includes(word) ? 1 : 0));
    return (place) => numbers.has(events.epoch[place]) || brokers[events.brokerEpoch[place]];
  }
  if (field === "is") {
    const lower = values.map((value) => value.toLowerCase());
    const kinds = KINDS.map((kind) => lower.includes(kind));
    const disturbed = lower.includes("disturbed");
    const known = new Set([...KINDS, "disturbed", ...words.fates]);
    const wrong = lower.find((value) => !known.has(value));
    if (wrong) throw new QueryError(`“is:${wrong}” is none of ${[...known].filter(Boolean).join(", ")}`);
    const fates = words.fates.map((fate) => lower.includes(fate));
    return (place) => kinds[events.kind[place]] || fates[events.fate[place]] || (disturbed && events.disturbing[events.fate[place]]);
  }
  const [column, dictionary, what] = {
    api: [events.what, words.whats, "API, function or record"],
    key: [events.key, words.keys, "key"],
    error: [events.error, words.errors, "error"],
  }[field];
  const codes = named(dictionary, values, what);
  return (place) => codes[column[place]];
}

/** Return which events meet all of the terms, a byte each; null if there is no term. */
export function matching(events, terms) {
  if (!terms.length) return null;
  const tests = terms.map((one) => test(events, one));
  const found = new Uint8Array(events.count);
  for (let place = 0; place < found.length; place++) {
    let holds = 1;
    for (const one of tests) if (!one(place)) { holds = 0; break; }
    found[place] = holds;
  }
  return found;
}

/** Return `{pairs, count}`: each Y with the last X before it that no other Y had, in order. */
export function pairsOf(events, query, atMost) {
  const x = matching(events, query.x);
  const y = matching(events, query.y);
  const group = query.same === "node" ? events.lane : query.same === "key" ? events.key : null;
  const last = new Map();
  const pairs = [];
  let count = 0;
  for (let place = 0; place < events.count; place++) {
    const at = group ? group[place] : 0;
    if (query.same === "key" && !at) continue;
    if (y[place]) {
      const before = last.get(at);
      if (before !== undefined && events.row[before] !== events.row[place]) {
        if (events.time[place] - events.time[before] <= query.withinNs) {
          if (count++ < atMost) pairs.push([before, place]);
        }
        last.delete(at);
      }
    }
    if (x[place]) last.set(at, place);
  }
  return { pairs, count };
}
