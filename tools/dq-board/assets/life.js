// A job's timeline: what is known of its attempts, in order, with the times between them.
import { h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

const MADE = /^(\d{12,14})-\d+$/;

// Until what follows nothing is known yet.
const NOTHING = "nothing";

// Moments of one job: when, what, how it is painted, and what follows until the next one.
function moments(job, seen, now) {
  const all = [];
  const add = (at, what, tone = "", then = "") => at !== null && at !== undefined && all.push({ at, what, tone, then });
  const made = MADE.exec(job.name);
  const over = job.state === "done" || job.state === "dead";
  if (made) add(Number(made[1]), "added", "", job.state === "blocked" ? "waits {} for others" : "waits {} until it is due");
  // What the server reports itself is not shown twice.
  const told = [job.started, job.failed, ...job.history.flatMap((it) => [it.started, it.ended])];
  for (const it of seen) if (!told.includes(it.at)) add(it.at, it.what, it.tone);
  const attempt = job.attempts > 1 ? `attempt ${text.full(job.attempts)}` : "first attempt";
  const last = job.history.at(-1);
  for (const it of job.history) {
    add(it.started, `delivered, attempt ${text.full(it.attempts)}`, "", "ran for {}");
    add(it.ended, `attempt ${it.how}`, "bad", it === last && over ? "" : "waits {} for its next attempt");
  }
  const failed = (what, then) => last?.ended !== job.failed && add(job.failed, `${what}${job.reason ? `: ${job.reason}` : ""}`, "bad", then);
  const again = job.failed !== null && !over && job.failed < (job.due ?? 0);
  if (again) failed("attempt failed", "waits {} for its next attempt");
  // When it was first delivered is not known once it was delivered again, unless that is a retry or the history has all.
  const isKnown = again || job.history.length + (job.started === null ? 0 : 1) >= job.attempts;
  const taken = !isKnown ? "was delivered within {}" : job.state === "ready" ? "waits {} for a worker" : "late by {}";
  if (job.awaits !== null) add(job.due, `goes on ${job.due >= text.LAST ? "with" : "without"} the signal ${job.awaits}`, "coming", NOTHING);
  else if (job.due !== null) add(job.due, "due", job.due > now ? "coming" : "", job.due > now ? NOTHING : taken);
  if (job.failed !== null && !over && !again) failed("attempt failed", "waits {} for its next attempt");
  if (job.started !== null) add(job.started, `delivered, ${attempt}${job.client === null ? "" : `, to ${job.client}`}`, "", job.state === "done" ? "ran for {}" : "runs for {}");
  if (job.state === "dead" && !failed("died", "")) add(job.failed, "died", "bad");
  if (job.state === "reserved") add(job.deadline, "lease expires unless renewed", job.deadline < now ? "bad" : "coming");
  add(job.finished, "done", "good");
  add(job.expires, "expires", "coming");
  if (!over) add(now, "now", "now", "{} to go");
  return all.sort((a, b) => a.at - b.at);
}

// Of what took less than a millisecond only "in time" is worth showing.
function lasting(what, next, ms) {
  if (what === NOTHING) return "";
  if (ms < 1) return what === "late by {}" ? "on time" : "";
  const words = next.tone === "now" ? what.replace(/^waits/, "has waited").replace(/^runs/, "has run") : what;
  return (words || "{}").replace("{}", text.millis(ms));
}

export function life() {
  const line = h("ol", { class: "life" });
  const note = h("p", { class: "earlier" });
  const steps = h("ol", { class: "steps" });
  const section = h("section", { class: "card", "aria-label": "Timeline" }, h("div", { class: "card-head" }, h("h2", {}, "Timeline")), line, steps, note);
  const seen = [];
  let before = null;

  // Changes while the page is open are kept as long as the page.
  function notice(job) {
    const now = live.now();
    const note = (at, what, tone = "note") => seen.push({ at, what: `seen: ${what}`, tone });
    // The last attempt, if it has ended by now.
    const ended = job.history.findLast((it) => it.attempts === job.attempts);
    if (before && before.attempts < job.attempts) note(job.started ?? ended?.started ?? now, `delivered, attempt ${text.full(job.attempts)}`);
    else if (before && before.state !== job.state) note(now, job.state);
    if (before && job.progress !== null && before.progress !== job.progress) note(now, `progress ${job.progress}`);
    // At the server, the next failure or success replaces this one.
    if (job.failed !== null && before?.failed !== job.failed) note(job.failed, `attempt failed${job.reason ? `: ${job.reason}` : ""}`, "bad");
    if (seen.length > 100) seen.splice(0, seen.length - 100);
    before = job;
  }

  function show(job) {
    const now = live.now();
    const all = moments(job, seen, now);
    const keyed = all.map((it, index) => ({ ...it, key: `${it.what} ${it.tone === "now" ? "" : it.at}`, next: all[index + 1] }));
    list(line, keyed, (it) => it.key, () => h("li", {}, h("time", {}), h("b", {}), h("span", {})), (row, it) => {
      const [when, what, then] = row.children;
      row.dataset.tone = it.tone;
      put(when, text.precise(it.at));
      // A time in which nothing ran is drawn as one.
      row.classList.toggle("waits", it.then.startsWith("waits"));
      put(what, it.what);
      put(then, it.next && it.next.at < text.LAST ? lasting(it.then, it.next, it.next.at - it.at) : "");
    });
    list(steps, job.steps, (step) => step.name, (step) => h("li", {}, h("b", {}, step.name), " ", h("span", {})), (row, step) => put(row.lastChild, step.value));
    const earlier = job.attempts - (job.started !== null ? 1 : 0) - Math.max(job.history.length, job.failed !== null && job.state !== "done" ? 1 : 0);
    put(note, earlier > 0 ? `${text.full(earlier)} earlier ${earlier === 1 ? "attempt" : "attempts"}: HISTORY of the queue says how many the server keeps.` : "");
  }

  return { section, notice, show, any: (job) => job.steps.length > 0 || moments(job, seen, live.now()).some((it) => it.tone !== "now") };
}
