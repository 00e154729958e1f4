// The line of a job's time: what is known of its attempts, in order, with what lies between.
import { h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

// The due time of a job that waits for a signal for as long as it takes.
const LAST = 4_398_046_511_103;
const MADE = /^(\d{12,14})-\d+$/;

// Moments of one job: when, what, how it is painted, and what follows until the next one.
export function moments(job, seen, now) {
  const all = [];
  const add = (at, what, tone = "", then = "") => at !== null && at !== undefined && all.push({ at, what, tone, then });
  const made = MADE.exec(job.name);
  const over = job.state === "done" || job.state === "dead";
  if (made) add(Number(made[1]), "added", "", job.state === "blocked" ? "waits for others" : "waits until it is due");
  for (const it of seen) add(it.at, it.what, "note");
  const attempt = job.attempts > 1 ? `attempt ${text.full(job.attempts)}` : "first attempt";
  const failed = (what, then) => add(job.failed, `${what}${job.reason ? `: ${job.reason}` : ""}`, "bad", then);
  const again = job.failed !== null && !over && job.failed < (job.due ?? 0);
  if (again) failed("attempt failed", "waits for its next attempt");
  if (job.due !== null && job.due < LAST) add(job.due, "due", job.due > now ? "coming" : "", job.state === "ready" ? "waits for a worker" : "late by");
  if (job.failed !== null && !over && !again) failed("attempt failed", "waits for its next attempt");
  if (job.started !== null) add(job.started, `delivered, ${attempt}`, "", job.state === "done" ? "ran" : "runs");
  if (job.state === "dead") failed("died", "");
  if (job.state === "reserved") add(job.deadline, "lease ends, unless the worker renews it", job.deadline < now ? "bad" : "coming");
  add(job.finished, "done", "good");
  add(job.expires, "expires", "coming");
  if (!over) add(now, "now", "now");
  return all.sort((a, b) => a.at - b.at);
}

export function life() {
  const line = h("ol", { class: "life" });
  const note = h("p", { class: "earlier" });
  const steps = h("ol", { class: "steps" });
  const section = h("section", { class: "card", "aria-label": "Its life" }, h("div", { class: "card-head" }, h("h2", {}, "Its life")), line, steps, note);
  const seen = [];
  let before = null;

  // What changes while one looks is kept as long as the page.
  function notice(job) {
    const now = live.now();
    if (before && before.attempts < job.attempts) seen.push({ at: job.started ?? now, what: `seen: delivered, attempt ${text.full(job.attempts)}` });
    else if (before && before.state !== job.state) seen.push({ at: now, what: `seen: ${job.state}` });
    if (before && job.progress !== null && before.progress !== job.progress) seen.push({ at: now, what: `seen: progress ${job.progress}` });
    if (seen.length > 100) seen.shift();
    before = job;
  }

  function show(job) {
    const now = live.now();
    const all = moments(job, seen, now);
    const keyed = all.map((it, index) => ({ ...it, key: `${it.what} ${it.tone === "now" ? "" : it.at}`, next: all[index + 1] }));
    list(line, keyed, (it) => it.key, () => h("li", {}, h("time", {}), h("b", {}), h("span", {})), (row, it) => {
      const [when, what, then] = row.children;
      row.dataset.tone = it.tone;
      put(when, text.at(it.at));
      put(what, it.what);
      put(then, it.next ? `${it.then ? `${it.then} ` : ""}${it.next.at - it.at < 1 ? "at once" : text.millis(it.next.at - it.at)}` : "");
    });
    list(steps, job.steps, (step) => step.name, (step) => h("li", {}, h("b", {}, step.name), " ", h("span", {})), (row, step) => put(row.lastChild, step.value));
    const earlier = job.attempts - (job.started !== null ? 1 : 0) - (job.failed !== null && job.state !== "done" ? 1 : 0);
    put(note, earlier > 0 ? `${text.full(earlier)} earlier ${earlier === 1 ? "attempt" : "attempts"}: the server keeps the last one only.` : "");
  }

  return { section, notice, show, any: (job) => job.steps.length > 0 || moments(job, seen, live.now()).some((it) => it.tone !== "now") };
}
