// The shape of the chart: paths and texts, from the server's answer and what is pointed at. Nothing here touches the
// page.
import { axis, drained } from "./scale.js";
import * as text from "./text.js";

export const HEIGHT = 210;
const FOOT = 22;
const HEAD = 18;
const FLOOR = HEIGHT - FOOT;
// Room between past and future for the jobs that are due already.
const MIDDLE = 22;
// Room on the right for the axis of the lateness, and how wide the chart must be: on a phone there is none.
const [AXIS, ROOMY] = [54, 500];
// A column of jobs due already that is higher is cut: otherwise nothing else could be seen.
const CUT = 4;

const sum = (values) => values.reduce((all, value) => all + value, 0);

// Where the parts are: past ones, then future ones, with room between them for jobs due already.
export function layout(answer, whole) {
  const hasAxis = whole >= ROOMY && Boolean(answer.late?.some((us) => us !== null));
  const width = hasAxis ? whole - AXIS : whole;
  const [before, coming] = [answer.past.length, answer.dues.length];
  const gap = before && coming ? MIDDLE : 0;
  const bar = (width - gap) / (before + coming);
  const half = before * bar;
  const right = half + gap;
  const part = (x) => (x < half ? x / bar : x < right ? before : before + (x - right) / bar);
  return { width, whole, hasAxis, gap, bar, half, right, middle: half + gap / 2, part, when: (x) => answer.from + part(x) * answer.each };
}

// `looked`: zoom or range, whether the scale is logarithmic, what is pointed at and selected; `perMs`: jobs that the
// workers do per ms, what limits them, what holds the queue now, in how many ms it goes on, and what holds a part of it.
export function shape(answer, width, looked, { perMs, why, hold, from, isAsked, isKnown, unseen, held, row }) {
  const { dues, each, past } = answer;
  const place = layout(answer, width);
  // Jobs due already are drawn at now, if that is in the chart.
  const ready = place.gap ? answer.due : 0;
  const others = Math.max(...dues, ...past.map((count, index) => count + (answer.failed?.[index] ?? 0)));
  const cut = !looked.log && others > 0 && ready > CUT * others;
  const scaled = axis(cut ? others : Math.max(others, ready, 1), looked.log);
  const level = leveled(scaled);
  const span = dues.length * each;
  const total = ready + sum(dues);
  // Jobs of paused groups stay: of those that become due as many as of all that wait.
  const later = held ? Math.min(held.later / Math.max(row.jobs[0] + row.jobs[4], 1), 1) : 0;
  const go = { ready: Math.max(ready - (held?.ready ?? 0), 0), dues: later ? dues.map((count) => count * (1 - later)) : dues };
  const stays = held ? Math.round(ready - go.ready + later * sum(dues)) : 0;
  const result = drained(go.ready, go.dues, span, perMs, from);
  const flows = isKnown && isAsked && (!hold || hold.until);
  const view = { answer, looked, perMs, why, hold, from, isAsked, isKnown, unseen, held, flows, row, ...place, ready, cut, scaled, level, span, line: isKnown ? perMs * each : 0, result, total, stays };
  const summary = summed(view);
  return {
    paths: paths(view),
    labels: labels(view),
    readout: looked.pointed === null ? summary : partTold(view, looked.pointed),
    verdict: place.gap ? sentence(view) : "",
    summary,
  };
}

function paths(view) {
  const { answer, looked, width, gap, bar, right, middle, ready, scaled, level, span, line, flows, result, total } = view;
  const { dues, past } = answer;
  const { pointed, drag } = looked;
  const x = right + (result.done / span) * (width - right);
  return {
    past: bars(view, past, 0),
    failed: answer.failed ? bars(view, answer.failed, 0) : "",
    ahead: bars(view, dues, right),
    due: ready ? column(view) : "",
    middle: gap ? `M${middle} ${FLOOR}V${FLOOR + 5}` : "",
    lines: [0, ...scaled.lines].map((value) => `M0 ${level(value)}H${width}`).join(""),
    late: lateness(view),
    unseen: answer.known.map((known, index) => (known || past[index] ? "" : `M${(index * bar).toFixed(1)} ${HEAD}h${(bar + 0.5).toFixed(1)}V${FLOOR}h${(-bar - 0.5).toFixed(1)}z`)).join(""),
    capacity: dues.length && line && line <= scaled.top ? `M${right} ${level(line)}H${width}` : "",
    end: gap && total && flows && result.done > 0 && result.done < span ? `M${x} ${HEAD}V${FLOOR}` : "",
    cursor: pointed === null ? "" : `M${(pointed < past.length ? 0 : gap) + (pointed + 0.5) * bar} ${HEAD - 8}V${FLOOR}`,
    shift: answer.shifts.map((it) => shiftAt(view, it)).filter((part) => part < past.length).map((part) => `M${(part * bar).toFixed(1)} ${HEAD - 10}V${FLOOR}`).join(""),
    picked: drag ? `M${drag[0]} ${HEAD}H${drag[1]}V${FLOOR}H${drag[0]}z` : "",
  };
}

const shiftAt = ({ answer }, { at }) => (at - answer.from) / answer.each;

// Workers that went and came.
function shiftTold({ came, went, all }) {
  const who = (count) => `${text.full(count)} ${count === 1 ? "worker" : "workers"}${all ? " of any queue" : ""}`;
  if (!came || !went) return `${who(came + went)} ${came ? "came" : "went"}`;
  return `${who(went)} went, ${text.full(came)} came`;
}

// How often they did, and the last time.
export function shiftsTold(shifts, when) {
  if (!shifts.length) return "";
  const last = shifts.reduce((a, b) => (when(b) < when(a) ? a : b));
  return ` Workers came or went ${shifts.length === 1 ? "once" : `${shifts.length} times`}, last at ${text.at(when(last))}: ${shiftTold(last)}.`;
}

// The height at which a value of this scale is drawn.
export const leveled = (scaled) => (value) => (FLOOR - scaled.at(value) * (FLOOR - HEAD)).toFixed(1);

export function bars({ bar, level }, values, left) {
  const gap = bar > 3 ? 1 : 0;
  return values.map((value, index) => (value > 0 ? `M${(left + index * bar).toFixed(1)} ${FLOOR}V${Math.min(level(value), FLOOR - 1.5)}h${(bar - gap).toFixed(1)}V${FLOOR}z` : "")).join("");
}

// A column that is cut has a jagged top.
function column({ half, ready, cut, level }) {
  const top = cut ? HEAD : Math.min(level(ready), FLOOR - 1.5);
  const [left, wide] = [half + 4, MIDDLE - 8];
  return `M${left} ${FLOOR}V${top}${cut ? `l${wide / 2} 5l${wide / 2} -5` : `h${wide}`}V${FLOOR}z`;
}

// The scale of the lateness, which has an axis of its own.
const latest = (answer) => axis(Math.max(...answer.late.map((us) => us ?? 0), 1), true);

function lateness({ answer, bar }) {
  if (!answer.late) return "";
  const most = latest(answer);
  let pen = "M";
  return answer.late.map((us, index) => {
    if (us === null) return (pen = "M"), "";
    const step = `${pen}${((index + 0.5) * bar).toFixed(1)} ${(FLOOR - most.at(us) * (FLOOR - HEAD)).toFixed(1)}${pen === "M" ? "h0.1" : ""}`;
    pen = "L";
    return step;
  }).join("");
}

// Pairs of attributes and a text.
function labels(view) {
  const { answer, width, whole, hasAxis, middle, ready, cut, scaled, level, line } = view;
  const texts = [...instants(view), ...counts(scaled, level, answer.each)];
  if (hasAxis) {
    const late = latest(answer);
    texts.push(...late.lines.map((us) => [{ x: whole, y: Number(leveled(late)(us)) + 4, "text-anchor": "end", class: "lateness" }, text.micros(us)]));
  }
  if (ready) texts.push([{ x: middle, y: cut ? HEAD - 5 : Math.max(level(ready) - 4, HEAD - 5), "text-anchor": "middle", class: "strong" }, text.count(ready)]);
  if (answer.dues.length && line > scaled.top) texts.push([{ x: width, y: HEAD + 12, "text-anchor": "end", class: "beyond" }, `capacity ${text.count(Math.round(line))} ↑`]);
  return texts;
}

// Instants between the ends and now, or each other.
function instants(view) {
  const { answer, looked: { range }, width, gap, half, right, middle, when } = view;
  const wide = width >= ROOMY;
  const between = gap ? [...(wide ? [half / 2] : []), middle, ...(wide ? [(right + width) / 2] : [])] : [width / 2];
  return [0, ...between, width].map((x) => {
    const anchor = x === 0 ? "start" : x === width ? "end" : "middle";
    const far = range && x === 0 && Math.abs(when(0) - answer.now) > 86_400_000;
    const reading = x === middle && gap ? "now" : far ? text.at(when(0)) : text.short(when(x), reach(view));
    return [{ x, y: HEIGHT - 4, "text-anchor": anchor }, reading];
  });
}

function counts({ lines }, level, each) {
  return lines.map((value, index) => {
    const unit = index === lines.length - 1 ? ` ${value === 1 ? "job" : "jobs"} in ${text.millis(each)}` : "";
    return [{ x: 0, y: level(value) - 3, "text-anchor": "start" }, `${text.count(value)}${unit}`];
  });
}

// How far the chart reaches from its middle, in ms.
function reach({ answer, looked, span }) {
  return looked.range ? ((answer.past.length + answer.dues.length) * answer.each) / 2 : span;
}

function partTold(view, index) {
  const { answer: { past, dues, failed, late, from, each }, looked: { range }, line } = view;
  const begin = from + index * each;
  const near = Math.min(reach(view), each * (each < 60_000 ? 5 : 20));
  const times = `${range ? text.at(begin) : text.short(begin, near)} to ${text.short(begin + each, near)}`;
  if (index >= past.length) return `${times}: ${text.jobs(dues[index - past.length])} due${line ? `, of ${text.count(Math.round(line))} that the workers can handle` : ""}`;
  const failures = Math.round(failed?.[index] ?? 0);
  const died = failures ? `, ${text.full(failures)} failed` : "";
  const lateBy = late?.[index] ? `, 99 % at most ${text.micros(late[index])} late` : "";
  const shifts = view.answer.shifts.filter((it) => Math.floor(shiftAt(view, it)) === index).map((it) => `; ${shiftTold(it)}`).join("");
  return `${times}: ${text.jobs(Math.round(past[index]))} delivered${died}${lateBy}${shifts}`;
}

function summed(view) {
  const { answer: { past, dues, from, now, each, known, since, later }, looked: { range, zoom }, unseen, span, ready, total } = view;
  const waiting = ready ? `, ${text.jobs(ready)} already due` : "";
  const beyond = later ? `, ${text.jobs(later)} later` : "";
  const delivered = unseen ? "what was delivered is not known" : `${text.jobs(Math.round(sum(past)))} delivered`;
  const shifts = shiftsTold(view.answer.shifts.filter((it) => shiftAt(view, it) < past.length), (it) => it.at);
  const due = `${text.jobs(total - ready)} due${waiting}${beyond}`;
  if (range) {
    const parts = [past.length ? delivered : "", dues.length ? due : ""].filter(Boolean);
    return `${text.at(from)} to ${text.at(from + (past.length + dues.length) * each)}: ${parts.join(", ")}.${shifts}`;
  }
  const first = known.indexOf(true);
  const begun = now - span + (first < 0 ? past.length : first) * each;
  const start = since > now - span && begun > since - each - 60_000 ? `Since ${text.at(since)}, when the board started` : `The last ${zoom}`;
  return `${start}: ${delivered}. The next ${zoom}: ${due}.${shifts}`;
}

function sentence({ answer: { now }, perMs, why, hold, from, isAsked, isKnown, unseen, held, row, span, total, stays, result: { done, left, longest } }) {
  if (unseen) return unseen;
  if (!total) return "there is nothing to do.";
  if (from === Infinity) return "the queue is paused: nothing is delivered until it is resumed.";
  if (!isAsked) return `no client asks for jobs${row.jobs[2] ? ` (${text.full(row.jobs[2])} reserved)` : ""}: nothing is delivered until one does.`;
  const whose = held && `${held.about ? "about" : held.more ? "at least" : "the"} ${text.jobs(stays)} of ${text.full(held.groups)} paused ${held.groups === 1 ? "group" : "groups"}`;
  if (stays && stays === total) return `nothing is delivered of ${whose}, and no other is due.`;
  const but = stays ? `, but for ${whose}` : "";
  const waited = row.oldest ? ` The oldest job has been due for ${text.millis(row.oldest)}.` : "";
  if (hold && !hold.until) return `not while ${hold.words}.${waited}`;
  if (hold && !isKnown) return `not before ${text.at(hold.until)}, as ${hold.words}.${waited}`;
  if (!isKnown) return `how long this takes is not known: enter the number of workers and the time of a job.${waited}`;
  const rate = `${text.rate(perMs * 1000)} a second${why}`;
  if (left > 0) return `${rate}: not enough. This peak is cleared by ${text.at(now + done)}, ${text.millis(done - span)} after its end${but}.`;
  if (stays) return `${rate}: this peak is cleared by ${text.at(now + done)}${but}.`;
  const most = Math.max(longest, row.oldest ? row.oldest + from : 0);
  const wait = most < 1000 ? "no job waits longer than a second" : `the longest wait is ${text.millis(most)}`;
  return `${rate}: this peak is cleared by ${text.at(now + done)}; ${wait}.`;
}
