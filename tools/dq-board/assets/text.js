// Numbers and times as people read them.

const UNITS = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const exact = new Intl.NumberFormat("en-US");

export function full(number) {
  return exact.format(number);
}

export function count(number) {
  if (number < 100_000) return exact.format(number);
  for (const [step, unit] of UNITS) {
    const shown = number / step;
    if (shown >= 0.9995) return shown.toFixed(shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0) + unit;
  }
  return exact.format(number);
}

export function rate(perSecond) {
  if (perSecond <= 0) return "0";
  if (perSecond < 0.1) return "<0.1";
  return perSecond < 9.95 ? perSecond.toFixed(1) : count(Math.round(perSecond));
}

export function bytes(number) {
  return number < 1000 ? `${number} B` : `${count(Math.max(number, 1000)).replace(/,\d+$/, "")}`.replace(/([kMGT])?$/, (unit) => (unit ? ` ${unit}B` : " kB"));
}

export function micros(us) {
  if (us === null || us === undefined) return "–";
  if (us < 0) return `>${micros(-us)}`;
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${trim(us / 1e3)} ms`;
  return millis(us / 1e3);
}

function trim(number) {
  return number < 10 && number % 1 ? number.toFixed(1) : String(Math.floor(number));
}

// The two largest units.
export function millis(ms) {
  const seconds = Math.floor(ms / 1000);
  const two = (large, unit, small, rest) => {
    const behind = Math.floor((seconds % large) / small);
    return `${Math.floor(seconds / large)} ${unit}${behind ? ` ${behind} ${rest}` : ""}`;
  };
  if (ms < 1000) return `${Math.floor(ms)} ms`;
  if (seconds < 10) return `${(Math.floor(ms / 100) / 10).toFixed(1)} s`;
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return two(60, "min", 1, "s");
  if (seconds < 86400) return two(3600, "h", 60, "min");
  if (seconds < 63_072_000) return two(86400, "d", 3600, "h");
  return `${Math.floor(seconds / 31_536_000)} years`;
}

// The due of a job that waits for a signal without a limit.
export const LAST = 4_398_046_511_103;
const UNSIGNALLED = "until it is signalled";

export function until(instant, now) {
  if (instant >= LAST) return UNSIGNALLED;
  const ahead = instant - now;
  if (Math.abs(ahead) < 1000) return "now";
  return ahead > 0 ? `in ${millis(ahead)}` : `${millis(-ahead)} ago`;
}

const OWN = new Intl.DateTimeFormat().resolvedOptions().timeZone;
// The zone of all times shown: the browser's, or UTC.
export let zone = kept() ?? OWN;
let [clock, day] = clocks();

function kept() {
  try {
    return localStorage.getItem("dq-zone");
  } catch {
    return null;
  }
}

function clocks() {
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: zone };
  return [new Intl.DateTimeFormat(undefined, time), new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", timeZone: zone })];
}

export const otherZone = () => (zone === "UTC" ? OWN : "UTC");

export function switchZone() {
  zone = otherZone();
  [clock, day] = clocks();
  try {
    if (zone === "UTC") localStorage.setItem("dq-zone", zone);
    else localStorage.removeItem("dq-zone");
  } catch { /* it holds until the tab is closed */ }
}

// To the millisecond.
export function precise(instant) {
  return instant >= LAST ? UNSIGNALLED : `${at(instant)}.${String(((instant % 1000) + 1000) % 1000).padStart(3, "0")}`;
}

export function at(instant) {
  if (instant >= LAST) return UNSIGNALLED;
  const date = new Date(instant);
  if (Number.isNaN(date.getTime())) return String(instant);
  return `${day.format(date)}, ${clock.format(date)}`;
}

export function short(instant, span) {
  const date = new Date(instant);
  if (span <= 86_400_000) return clock.format(date).slice(0, span <= 300_000 ? 8 : 5);
  return span > 7_000_000_000 ? day.format(date) : day.format(date).replace(/ \d+$/, "");
}

export function jobs(number) {
  return number === 1 ? "1 job" : `${full(number)} jobs`;
}

// Of a reason of several lines the one that tells what happened: of a Python traceback the last, else the first.
export function telling(reason) {
  const lines = reason.split("\n").filter((line) => line.trim());
  return (reason.startsWith("Traceback") ? lines.at(-1) : lines[0]) ?? reason;
}

// Makes control characters and what changes the direction of writing visible. Line breaks stay.
const UNFIT = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
export const visible = (text) => text.replace(UNFIT, escaped);

export function escaped(letter) {
  const code = letter.charCodeAt(0);
  return code < 128 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

// JSON nested deeper is not indented further: a payload of brackets alone would fill the memory with spaces.
const DEEPEST = 40;

// JSON with line breaks. Every token stays as it is, also numbers that JavaScript would round.
export function indented(text) {
  const shown = [];
  let depth = 0;
  let opened = false;
  const line = () => `\n${"  ".repeat(Math.min(depth, DEEPEST))}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    // Nothing is between brackets that close at once.
    if (opened ? !closes : closes) shown.push(line());
    opened = token === "{" || token === "[";
    if (opened) depth += 1;
    shown.push(token === ":" ? ": " : token);
    if (token === ",") shown.push(line());
  }
  return shown.join("");
}
