// A queue's row in the stream, by its key, and links to jobs.
import { h, putName } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

// The states in the order in which they are counted.
export const STATES = ["delayed", "ready", "reserved", "dead", "blocked", "done"];
const EMPTY = { jobs: STATES.map(() => 0), rates: [0, 0, 0], late: [null, null], waiting: 0, paused: 0, recurring: 0, groups: 0, bytes: 0, doneBytes: 0, totals: [] };

// A letter of UTF-8, or another byte.
const LETTER = /%[0-7][\da-f]|%[cd][\da-f]%[89ab][\da-f]|%e[\da-f](?:%[89ab][\da-f]){2}|%f[0-4](?:%[89ab][\da-f]){3}|%[\da-f]{2}/gi;
const SHORT = { "%0A": "\\n", "%0D": "\\r", "%09": "\\t", "%5C": "\\\\" };

// A name is encoded bytes; what is not text is shown escaped, as the board does it.
export function nameOf(key) {
  const letter = (codes) => {
    try {
      return SHORT[codes.toUpperCase()] ?? decodeURIComponent(codes);
    } catch {
      return codes.toLowerCase().replaceAll("%", "\\x");
    }
  };
  const shown = text.visible(key.slice(key.indexOf(":") + 1).replace(LETTER, letter));
  return shown.trim() ? shown : shown.replaceAll(/\s/g, text.escaped);
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
