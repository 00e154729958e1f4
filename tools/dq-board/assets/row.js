// A queue's row in the stream, by its key, and links to jobs.
import { h, putName } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

// The states in the order in which they are counted.
export const STATES = ["delayed", "ready", "reserved", "dead", "blocked", "done"];
const EMPTY = { jobs: STATES.map(() => 0), rates: [0, 0, 0], late: [null, null], waiting: 0, paused: 0, recurring: 0, groups: 0, bytes: 0, doneBytes: 0, totals: [] };

// A name is encoded bytes; what is not text is shown escaped.
export function nameOf(key) {
  const name = key.slice(key.indexOf(":") + 1);
  try {
    const shown = text.visible(decodeURIComponent(name));
    return shown.trim() ? shown : shown.replaceAll(/\s/g, text.escaped);
  } catch {
    return name;
  }
}

export function rowOf(key) {
  return { ...EMPTY, key, name: nameOf(key), missing: !live.rows.has(key), isRead: Boolean(live.rows.get(key)?.jobs) || live.isGone(key), ...live.rows.get(key) };
}

// Among the totals of a queue, which count since it came to this server.
export const [DELIVERED, MISSED] = [1, 8];

// Whether every run of the queue's only rule was skipped.
export const isAllSkipped = ({ runs, grace }, { totals, recurring }) => grace > 0 && recurring === 1 && totals[DELIVERED] === 0 && runs > 0 && totals[MISSED] >= runs;

// How many runs of a rule have come: the server counts skipped ones too.
export function came(rule, row) {
  const said = `${text.full(rule.runs)}${rule.times ? ` of ${text.full(rule.times)}` : ""}`;
  if (!rule.grace || !rule.runs || !row.totals[MISSED]) return said;
  return `${said}, ${isAllSkipped(rule, row) ? "all skipped" : "with skipped ones"} (GRACE)`;
}

export const jobLink = (key, { id, name }) => putName(h("a", { href: `job?queue=${key}&id=${id}` }), name);
