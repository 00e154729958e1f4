// The jobs of one state, page by page, and the search by id.
import { attribute, h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import { head, rowOf, STATES } from "./queue.js";
import { decode } from "./table.js";

// What the instant of a job means in each state, and how it is told.
const AT = {
  delayed: ["Due", (at, now) => [text.until(at, now), ""]],
  ready: ["Late by", (at, now) => [text.millis(Math.max(now - at, 0)), now - at > 50_000 ? "bad" : now - at > 5000 ? "warn" : ""]],
  reserved: ["Lease ends", (at, now) => (at < now ? ["over", "bad"] : [text.until(at, now), at - now < 2000 ? "warn" : ""])],
  dead: ["Died", (at, now) => [text.until(at, now), ""]],
  blocked: ["Due", (at, now) => (at === null ? ["–", "quiet"] : [text.until(at, now), ""])],
  done: ["Finished", (at, now) => [text.until(at, now), ""]],
};

const given = (value, show = String) => (value === null || value === undefined ? "–" : show(value));
const ATTEMPTS = ["Attempts", (job) => text.full(job.attempts)];
const PRIORITY = ["Priority", (job) => String(job.priority)];
const SIZE = ["Size", (job) => text.bytes(job.length)];
const OTHERS = [ATTEMPTS, PRIORITY, SIZE, ["Payload", (job) => job.payload]];

// What else a list tells of each job.
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
  blocked: "No blocked jobs: none waits for others.",
  done: "No done jobs are kept. A queue keeps them by DONELEN, DONETTL or DONEBYTES of DQ.CFGSET, a job by KEEP of DQ.ADD.",
};

// What can be done to several jobs at once; among those found by id, whatever their state.
const ACTS = { delayed: ["now", "cancel"], ready: ["cancel"], reserved: ["delete"], dead: ["kick", "delete"], blocked: ["free", "cancel"], done: ["again", "delete"], found: ["cancel"] };

// Boxes to choose jobs with, and what is done to those chosen.
function choosing(key, about, state, table, done) {
  const chosen = new Set();
  const count = h("p", { class: "note", role: "status" });
  const buttons = ACTS[about.find ? "found" : state].map((what) => act.button(act.SEVERAL[what][0], () => act.several(key, what, [...chosen], () => { clear(); done(); }), what === "cancel" || what === "delete"));
  const further = h("button", { type: "button", hidden: true, onclick: () => all(matching) });
  const bar = h("div", { class: "chosen", role: "group", "aria-label": "Selected jobs", hidden: true }, count, ...buttons, further);
  const every = h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: () => all(every.checked ? boxes().map((box) => box.value) : []) });
  let matching = [];
  const boxes = () => [...table.querySelectorAll("tbody .pick input")];

  function all(ids) {
    chosen.clear();
    for (const id of ids) chosen.add(id);
    show();
  }

  function clear() {
    all([]);
  }

  function show() {
    const shown = boxes();
    for (const box of shown) box.checked = chosen.has(box.value);
    every.checked = shown.length > 0 && shown.every((box) => box.checked);
    bar.hidden = chosen.size === 0;
    put(count, `${text.jobs(chosen.size)} selected`);
    further.hidden = matching.length <= shown.length || chosen.size === matching.length;
    put(further, `Select all ${text.full(matching.length)} that match`);
  }

  return {
    bar,
    head: h("th", { scope: "col", class: "pick" }, every),
    box: (job) => h("td", { class: "pick" }, h("input", { type: "checkbox", value: job.id, "aria-label": `Select ${job.name}`, onchange: (event) => { chosen[event.target.checked ? "add" : "delete"](job.id); show(); } })),
    // What is not there any more cannot be chosen.
    keep(ids) {
      matching = ids;
      const there = new Set(ids);
      for (const id of chosen) if (!there.has(id)) chosen.delete(id);
      show();
    },
    offer: () => table.classList.toggle("choosing", live.state.actions),
  };
}

export function jobs(main, about, env) {
  const key = about.queue;
  const state = STATES.includes(about.state) ? about.state : "delayed";
  const updateHead = head(main, key, state, env);
  const [title, show] = AT[state];
  const more = MORE[state] ?? OTHERS;
  const search = h("input", { type: "search", placeholder: "Search by id", "aria-label": "Search by id", spellcheck: "false" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", hidden: true });
  const choice = choosing(key, about, state, table, () => (followed ? followed.now() : env.go(location.href, true)));
  table.append(h("thead", {}, h("tr", {}, choice.head, ...["Id", title, ...more.map(([name]) => name)].map((name, index) => h("th", { scope: "col", class: `j${index}` }, name)))), body);
  const kept = state === "done" ? h("p", { class: "note" }) : null;
  const reasons = h("nav", { class: "reasons", "aria-label": "Reasons" });
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  main.append(h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); find(); } }, search, h("button", { type: "submit" }, "Search"), kept), reasons, wrong, choice.bar, table, empty, further);
  let answer = null;
  let followed = null;

  const page = `queue=${key}&state=${state}${about.from ? `&from=${about.from}` : ""}${about.skip ? `&skip=${about.skip}` : ""}`;
  if (about.find) {
    search.value = decode(about.find);
    seek("");
  } else if (about.reason) followed = live.follow((signal) => live.look("died", `queue=${key}&reason=${about.reason}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), takeDied, { every: 10_000 });
  else followed = live.follow((signal) => live.look("jobs", page, signal), take, { weight: (found) => found.weight });

  const counted = state === "dead" && !about.find && !about.reason ? live.follow((signal) => live.look("died", `queue=${key}`, signal), (found) => found && count(found), { every: 30_000 }) : null;

  // The reasons of those looked at, each with its jobs one click away.
  function count(found) {
    const here = `jobs?queue=${key}&state=dead`;
    const links = found.reasons.map(([reason, jobs]) => [reason, jobs, `${here}&reason=${encodeURIComponent(reason)}`]);
    if (about.reason) links.unshift(["All reasons", null, here]);
    reasons.replaceChildren(...(found.seen || about.reason ? links : []).map(([reason, jobs, href]) => h("a", { href, title: reason, "aria-current": about.reason && href.endsWith(`&reason=${about.reason}`) ? "true" : undefined }, h("span", {}, reason), jobs === null ? null : h("b", {}, text.count(jobs)))));
    if (found.kinds > found.reasons.length) reasons.append(h("span", { class: "note" }, `and ${text.full(found.kinds - found.reasons.length)} more`));
    if (found.more || about.cursor) reasons.append(h("span", { class: "note" }, `of ${text.jobs(found.seen)} checked`));
  }

  function takeDied(found, error) {
    take(found, error);
    if (found) count(found);
  }

  function take(found, error) {
    put(wrong, error ?? "");
    if (found) answer = found;
    update();
  }

  function find() {
    const id = encodeURIComponent(search.value);
    env.go(search.value ? `jobs?queue=${key}&state=${state}&find=${id}` : `jobs?queue=${key}&state=${state}`);
  }

  // Found by id, whatever the state.
  async function seek(cursor) {
    further.replaceChildren(h("p", { class: "note" }, "Searching."));
    try {
      const found = await live.look("search", `queue=${key}&id=${about.find}${cursor ? `&cursor=${cursor}` : ""}`);
      for (const it of found.found) {
        body.append(h("tr", { "data-line": "" }, choice.box(it), h("td", { class: "j0", colspan: 6 }, h("a", { href: `job?queue=${key}&id=${it.id}` }, it.name))));
      }
      further.replaceChildren();
      if (found.more) further.append(h("button", { type: "button", onclick: () => seek(found.more) }, "Search further"));
      table.hidden = !body.children.length;
      empty.hidden = !table.hidden;
      put(empty, found.more ? "No match so far." : "No id contains this text.");
    } catch (error) {
      put(wrong, error.message);
      further.replaceChildren();
    }
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
    updateHead();
    if (kept) put(kept, `${text.bytes(rowOf(key).doneBytes)} of ids, payloads, results and progress`);
    if (!answer) return;
    list(body, answer.jobs, (job) => job.id, line, fill);
    choice.offer();
    choice.keep(answer.ids ?? answer.jobs.map((job) => job.id));
    table.hidden = answer.jobs.length === 0;
    empty.hidden = !table.hidden;
    put(empty, about.reason ? "None of the jobs checked died for this reason." : about.from || about.skip ? "This page has no jobs any more." : NONE[state]);
    const here = `jobs?queue=${key}&state=${state}`;
    const links = [];
    if (about.from || about.skip) links.push(["First page", here]);
    if (answer.more && about.reason) links.push(["Search further", `${here}&reason=${about.reason}&cursor=${answer.more}`]);
    else if (answer.more) links.push(["Next page", `${here}&from=${answer.more.from}&skip=${answer.more.skip}`]);
    list(further, links, ([name]) => name, ([name, href]) => h("a", { class: "button", href }, name), (link, [, href]) => attribute(link, "href", href));
  }

  return {
    update: () => (about.find ? (updateHead(), choice.offer()) : update()),
    close: () => {
      followed?.stop();
      counted?.stop();
    },
  };
}
