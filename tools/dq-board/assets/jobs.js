// The jobs of one state, page by page, or those that a filter selects.
import { attribute, h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as bulk from "./bulk.js";
import { choosing } from "./choice.js";
import * as filter from "./filter.js";
import * as found from "./found.js";
import { head } from "./queue.js";
import { rowOf, STATES } from "./row.js";
import { decode } from "./table.js";

// What the instant of a job means in each state, and how it is shown.
const AT = {
  delayed: ["Due", (at, now) => [text.until(at, now), ""]],
  ready: ["Late by", (at, now) => [text.millis(Math.max(now - at, 0)), now - at > 50_000 ? "bad" : now - at > 5000 ? "warn" : ""]],
  reserved: ["Lease expires", (at, now) => (at < now ? ["expired", "bad"] : [text.until(at, now), at - now < 2000 ? "warn" : ""])],
  dead: ["Died", (at, now) => [text.until(at, now), ""]],
  blocked: ["Due", (at, now) => (at === null ? ["–", "quiet"] : [text.until(at, now), ""])],
  done: ["Finished", (at, now) => [text.until(at, now), ""]],
};

const given = (value, show = String) => (value === null || value === undefined ? "–" : show(value));
const ATTEMPTS = ["Attempts", (job) => text.full(job.attempts)];
const PRIORITY = ["Priority", (job) => String(job.priority)];
const SIZE = ["Size", (job) => text.bytes(job.length)];
const OTHERS = [ATTEMPTS, PRIORITY, SIZE, ["Payload", (job) => job.payload]];

// What else a list shows of each job.
const MORE = {
  dead: [ATTEMPTS, PRIORITY, SIZE, ["Reason", (job) => given(job.reason)]],
  blocked: [ATTEMPTS, PRIORITY, SIZE, ["Waits for", (job) => given(job.after)]],
  done: [["Ran for", (job) => given(job.ran, text.millis)], ATTEMPTS, SIZE, ["Result", (job) => given(job.result)]],
};

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
    nav.replaceChildren(...links.map(([reason, jobs, href]) => h("a", { href, title: reason, "aria-current": reason === current ? "true" : undefined }, h("span", {}, reason), jobs === null ? null : h("b", {}, text.count(jobs)))));
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
  const here = `jobs?queue=${key}&state=${state}`;
  const kept = state === "done" ? h("p", { class: "note" }) : null;
  const slow = state === "done" ? h("a", { class: "button", href: about.slow ? here : `${here}&slow=1` }, about.slow ? "By finish time" : "Slowest first")
    : state === "dead" && !filtered ? h("a", { class: "button", href: about.newest ? here : `${here}&newest=1` }, about.newest ? "Oldest first" : "Newest first") : null;
  const wrong = h("p", { class: "wrong", role: "alert" });
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  const form = filter.form(about, state, (words) => env.go(here + words), slow, kept);
  const why = state === "dead" ? reasons(key, about) : null;
  const page = (filtered ? matching : state === "done" && about.slow ? slowest : inOrder)({ key, about, state, here, wrong, empty, further, again: () => env.go(location.href, true) });
  main.append(...[form, why?.nav, wrong, ...page.bars, page.table, empty, further].filter(Boolean));
  return {
    update() {
      updateHead();
      if (kept) put(kept, `${text.bytes(rowOf(key).doneBytes)} of ids, payloads, results and progress`);
      page.update();
    },
    close() {
      why?.stop();
      page.close();
    },
  };
}

// The jobs that a filter selects, as they are found.
function matching({ key, about, state, wrong, empty, further, again }) {
  const body = h("tbody", {});
  const table = h("table", { class: "jobs found", "aria-label": "Jobs found", hidden: true });
  const choice = choosing(key, about.all === "1" ? "all" : state, table, again);
  table.append(h("thead", {}, h("tr", {}, choice.head, ...found.titles())), body);
  found.sorted(table);
  put(empty, "No job matches.");
  const searched = found.search(found.inQueue(key, about, state), {
    further, wrong, empty,
    rows: (jobs) => { body.append(...jobs.map((job) => found.line(key, choice.box, job))); table.hidden = false; },
    shown: (ids) => choice.keep(ids),
  });
  const all = bulk.bar(key, about, state, again);
  return { table, bars: [all.row, choice.bar], update: () => { choice.offer(); all.offer(); }, close: searched.stop };
}

// All jobs of a state, in its order.
function inOrder({ key, about, state, here, wrong, empty, further }) {
  const [title, show] = AT[state];
  const more = MORE[state] ?? OTHERS;
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", "aria-label": "Jobs", hidden: true });
  const page = `queue=${key}&state=${state}${about.newest ? "&newest=1" : ""}${about.from ? `&from=${about.from}` : ""}${about.skip ? `&skip=${about.skip}` : ""}`;
  let answer = null;
  const followed = live.follow((signal) => live.look("jobs", page, signal), take, { weight: (it) => it.weight, every: about.newest ? 5000 : 1000 });
  const choice = choosing(key, state, table, () => followed.now());
  table.append(h("thead", {}, h("tr", {}, choice.head, ...["Id", title, ...more.map(([name]) => name)].map((name, index) => h("th", { scope: "col", class: `j${index}` }, name)))), body);

  function take(jobs, error) {
    put(wrong, error ?? "");
    if (jobs) answer = jobs;
    update();
  }

  function line(job) {
    return h("tr", { "data-line": "" }, choice.box(job), h("td", { class: "j0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)), ...[1, 2, 3, 4, 5].map((index) => h("td", { class: `j${index}` })));
  }

  function fill(element, job) {
    const now = live.now();
    const cells = [...element.children].slice(1);
    put(cells[1], ...show(job.at, now));
    attribute(cells[1], "title", job.at === null ? null : text.at(job.at));
    more.forEach(([, cell], index) => put(cells[index + 2], cell(job)));
    attribute(cells[5], "title", cells[5].textContent.slice(0, 300));
  }

  function update() {
    if (!answer) return;
    list(body, answer.jobs, (job) => job.id, line, fill);
    choice.offer();
    choice.keep(answer.jobs.map((job) => job.id));
    table.hidden = answer.jobs.length === 0;
    empty.hidden = !table.hidden;
    put(empty, about.from || about.skip ? "This page has no jobs any more." : NONE[state]);
    const links = [];
    if (about.from || about.skip) links.push(["First page", here]);
    if (answer.more) links.push(["Next page", `${here}&from=${answer.more.from}&skip=${answer.more.skip}`]);
    list(further, links, ([name]) => name, ([name, href]) => h("a", { class: "button", href }, name), (link, [, href]) => attribute(link, "href", href));
  }

  return { table, bars: [choice.bar], update, close: followed.stop };
}

// Done jobs, those that ran longest first.
function slowest({ key, about, state, here, wrong, empty, further }) {
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", "aria-label": "Jobs", hidden: true });
  const note = h("p", { class: "note", role: "status" });
  const labels = h("tbody", {});
  const byLabel = h("table", { class: "jobs labels", "aria-label": "Run times by label", hidden: true }, h("thead", {}, h("tr", {}, ...["Label", "Jobs", "p50", "p99"].map((name) => h("th", { scope: "col" }, name)))), labels);
  const choice = choosing(key, state, table, () => followed.now());
  const more = MORE.done;
  table.append(h("thead", {}, h("tr", {}, choice.head, ...["Id", AT.done[0], ...more.map(([name]) => name)].map((name, index) => h("th", { scope: "col", class: `j${index}` }, name)))), body);
  const line = (job) => h("tr", { "data-line": "" }, choice.box(job), h("td", { class: "j0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)),
    h("td", { class: "j1", title: text.at(job.at) }, text.until(job.at, live.now())), ...more.map(([, cell], index) => h("td", { class: `j${index + 2}` }, cell(job))));
  const followed = live.follow((signal) => live.look("slowest", `queue=${key}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), (answer, error) => {
    put(wrong, error ?? "");
    if (!answer) return;
    list(body, answer.jobs, (job) => job.id, line);
    choice.keep(answer.jobs.map((job) => job.id));
    put(note, answer.half === null ? "" : `Half took at most ${text.millis(answer.half)}, 99 % at most ${text.millis(answer.most)}, of ${text.jobs(answer.seen)} checked.`);
    byLabel.hidden = !answer.labels.some((label) => label.name !== null);
    list(labels, answer.labels, (label) => label.id, (label) => h("tr", {}, h("td", {}, label.name === null ? "none" : h("a", { href: `${here}&label=${label.id}` }, label.name)), h("td", {}), h("td", {}), h("td", {})), (row, label) => {
      [text.full(label.count), text.millis(label.half), text.millis(label.most)].forEach((shown, index) => put(row.children[index + 1], shown));
    });
    table.hidden = answer.jobs.length === 0;
    empty.hidden = !table.hidden;
    put(empty, NONE.done);
    further.replaceChildren(...(answer.more ? [h("a", { class: "button", href: `${here}&slow=1&cursor=${answer.more}` }, "Search further")] : []));
  }, { every: 10_000 });
  return { table, bars: [note, byLabel, choice.bar], update: choice.offer, close: followed.stop };
}
