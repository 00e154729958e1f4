// The jobs of one state, page by page, or those that a filter selects.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as bulk from "./bulk.js";
import { choosing } from "./choice.js";
import { page, sheet } from "./columns.js";
import * as filter from "./filter.js";
import * as found from "./found.js";
import { ATTEMPTS, exactly, NAME, SIZE, worded } from "./found.js";
import { head } from "./queue.js";
import { jobLink, rowOf, STATES } from "./row.js";
import { decode } from "./table.js";

// What the instant of a job means in each state, how it is shown, and how it sorts.
const AT = {
  delayed: { title: "Due", up: true, told: (at, now) => [text.until(at, now), ""] },
  ready: { title: "Late by", by: (job) => -job.at, told: (at, now) => [text.millis(Math.max(now - at, 0)), now - at > 50_000 ? "bad" : now - at > 5000 ? "warn" : ""] },
  reserved: { title: "Lease expires", up: true, told: (at, now) => (at < now ? ["expired", "bad"] : [text.until(at, now), at - now < 2000 ? "warn" : ""]) },
  dead: { title: "Died", told: (at, now) => [text.until(at, now), ""] },
  blocked: { title: "Due", up: true, told: (at, now) => (at === null ? ["–", "quiet"] : [text.until(at, now), ""]) },
  done: { title: "Finished", told: (at, now) => [text.until(at, now), ""] },
};

const PRIORITY = { title: "Priority", up: true, by: (job) => job.priority, show: (job) => String(job.priority) };
const RAN = { title: "Ran for", by: (job) => job.ran, show: (job) => (job.ran === null ? "–" : text.millis(job.ran)) };
const OTHERS = [ATTEMPTS, PRIORITY, SIZE, worded("Payload", (job) => job.payload)];

// What else a list shows of each job.
const MORE = {
  dead: [ATTEMPTS, PRIORITY, SIZE, worded("Reason", (job) => job.reason)],
  blocked: [ATTEMPTS, PRIORITY, SIZE, worded("Waits for", (job) => job.after)],
  done: [RAN, ATTEMPTS, SIZE, worded("Result", (job) => job.result)],
};

const columns = (key, state) => [
  { ...NAME, make: (job) => jobLink(key, job) },
  { by: (job) => job.at, show: (job) => [...AT[state].told(job.at, live.now()), exactly(job.at)], ...AT[state] },
  ...(MORE[state] ?? OTHERS),
];

const NONE = {
  delayed: "No delayed jobs.",
  ready: "No ready jobs: everything that is due has been delivered.",
  reserved: "No reserved jobs: no worker has one.",
  dead: "No dead jobs.",
  blocked: "No blocked jobs: none are waiting for others.",
  done: "No done jobs are kept. A queue keeps them by DONELEN, DONETTL or DONEBYTES of DQ.CFGSET, a job by KEEP of DQ.ADD.",
};

// The reasons of dead jobs, each linked to its jobs.
function reasons(key, about) {
  const nav = h("nav", { class: "reasons", "aria-label": "Reasons" });
  const here = `jobs?queue=${key}&state=dead`;
  const current = decode(about.kind);
  const followed = live.follow((signal) => live.look("died", `queue=${key}`, signal), (answer) => {
    if (!answer) return;
    const links = answer.reasons.map(([reason, jobs]) => [reason, jobs, `${here}&kind=${encodeURIComponent(reason)}`]);
    if (current) links.unshift(["All reasons", null, here]);
    nav.replaceChildren(...links.map(([reason, jobs, href]) => h("a", { href, title: reason, "aria-current": reason === current ? "true" : undefined }, h("span", {}, text.telling(reason)), jobs === null ? null : h("b", {}, text.count(jobs)))));
    if (answer.kinds > answer.reasons.length) nav.append(h("span", { class: "note" }, `and ${text.full(answer.kinds - answer.reasons.length)} more`));
    if (answer.more) nav.append(h("span", { class: "note" }, `of ${text.jobs(answer.seen)} checked`));
  }, { every: 30_000 });
  return { nav, stop: followed.stop };
}

export function jobs(main, about, env) {
  const key = about.queue;
  const state = STATES.includes(about.state) ? about.state : "delayed";
  const filtered = filter.isFiltered(about);
  const updateHead = head(main, key, state, env);
  const kept = state === "done" ? h("p", { class: "note" }) : null;
  const otherOrder = (word, usual, other) => h("a", { class: "button", href: env.at({ [word]: about[word] ? "" : "1", from: "", skip: "", cursor: "", sort: "" }) }, about[word] ? usual : other);
  const turn = state === "done" ? otherOrder("slow", "By finish time", "Slowest first") : state === "dead" && !filtered ? otherOrder("newest", "Oldest first", "Newest first") : null;
  const form = filter.form(about, state, (words) => env.go(`jobs?queue=${key}&state=${state}${words}`), turn, kept);
  const why = state === "dead" ? reasons(key, about) : null;
  const shown = (filtered ? matching : state === "done" && about.slow ? slowest : inOrder)({ key, about, state, env });
  main.append(form, ...(why ? [why.nav] : []), ...shown.parts);
  return {
    update() {
      updateHead();
      if (kept) put(kept, `${text.bytes(rowOf(key).doneBytes)} of ids, payloads, results and progress`);
      shown.update();
    },
    close() {
      why?.stop();
      shown.close();
    },
  };
}

// The jobs that a filter selects, as they are found.
function matching({ key, about, state, env }) {
  const again = () => env.go(location.href, true);
  const choice = choosing(key, about.all === "1" ? "all" : state, again);
  const all = bulk.bar(key, about, state, again);
  const shown = page("Jobs found", found.columns(key), env, { letter: "f", kind: "found", choice, bars: [all.row, choice.bar], none: "No job matches." });
  const searched = found.search(found.inQueue(key, about, state), shown);
  const update = () => {
    choice.offer();
    all.offer();
    shown.again();
  };
  return { parts: shown.parts, update, close: searched.stop };
}

// All jobs of a state, in its order.
function inOrder({ key, about, state, env }) {
  const isLater = about.from || about.skip;
  const question = ["newest", "from", "skip"].filter((word) => about[word]).map((word) => `&${word}=${about[word]}`).join("");
  const choice = choosing(key, state, () => followed.now());
  const shown = page("Jobs", columns(key, state), env, { letter: "j", choice, bars: [choice.bar] });
  const followed = shown.asked("jobs", `queue=${key}&state=${state}${question}`, (answer) => {
    shown.show(answer.jobs, isLater ? "This page has no jobs any more." : NONE[state]);
    choice.offer();
    shown.links([isLater && ["First page", { from: "", skip: "" }], answer.more && ["Next page", answer.more]]);
  }, { weight: (it) => it.weight, every: about.newest ? 5000 : 1000 });
  return { parts: shown.parts, update: followed.again, close: followed.stop };
}

// Done jobs, those that ran longest first.
function slowest({ key, about, state, env }) {
  const note = h("p", { class: "note", role: "status" });
  const label = (it) => (it.name === null ? "none" : h("a", { href: `jobs?queue=${key}&state=${state}&label=${it.id}` }, it.name));
  const labels = sheet("Run times by label", [
    { title: "Label", up: true, by: (it) => it.name, make: label },
    { title: "Jobs", by: (it) => it.count, show: (it) => text.full(it.count) },
    { title: "p50", by: (it) => it.half, show: (it) => text.millis(it.half) },
    { title: "p99", by: (it) => it.most, show: (it) => text.millis(it.most) },
  ], env, { kind: "labels", word: "labels" });
  const choice = choosing(key, state, () => followed.now());
  const shown = page("Jobs", columns(key, state), env, { letter: "j", choice, bars: [note, labels.table, choice.bar], none: NONE.done });
  const followed = shown.asked("slowest", `queue=${key}${about.cursor ? `&cursor=${about.cursor}` : ""}`, (answer) => {
    choice.offer();
    shown.show(answer.jobs);
    labels.show(answer.labels.some((it) => it.name !== null) ? answer.labels : []);
    put(note, answer.half === null ? "" : `Half took at most ${text.millis(answer.half)}, 99 % at most ${text.millis(answer.most)}, of ${text.jobs(answer.seen)} checked.`);
    shown.links([about.cursor && ["First jobs", { cursor: "" }], answer.more && ["Search further", { cursor: answer.more }]]);
  }, { every: 10_000 });
  return { parts: shown.parts, update: followed.again, close: followed.stop };
}
