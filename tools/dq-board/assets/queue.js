// One queue: its figures, its forecast, its settings; and the head that its other pages share.
import { centre, h, put, putTitle, replace } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import { retryDead } from "./bulk.js";
import { forecast } from "./forecast.js";
import { rowOf, STATES } from "./row.js";
import { badge, lateness, oldest, tile } from "./table.js";

// The queue's name, its actions, and links to its pages.
export function head(main, key, current, env) {
  const name = h("span", { class: "name" });
  const mark = h("span", { class: "badge" });
  const buttons = h("div", { class: "actions" });
  const tabs = h("nav", { class: "tabs", "aria-label": "Pages of this queue" });
  main.append(h("div", { class: "queue-head" }, h("h1", {}, name, " ", mark), buttons), tabs);
  env.trail.append(h("a", { href: "./" }, "Queues"));
  let actions = null;
  let isCentred = false;
  let isGone = false;
  const links = [["overview", `queue?queue=${key}`], ...STATES.map((state) => [state, `jobs?queue=${key}&state=${state}`]), ["workers", `workers?queue=${key}`], ["signals", `signals?queue=${key}`], ["recurring", `recurring?queue=${key}`], ["groups", `groups?queue=${key}`]].map(([id, href]) => {
    const count = h("span", { class: "count" });
    const link = h("a", { href, "aria-current": id === current ? "page" : undefined }, id.charAt(0).toUpperCase() + id.slice(1), " ", count);
    tabs.append(link);
    return [id, count];
  });
  live.see([key]);
  return function update() {
    const row = rowOf(key);
    document.title = `${row.name} – dq`;
    putTitle(name, row.name);
    // Until it is there again: others may be found meanwhile.
    isGone = live.isGone(key) || (isGone && row.missing);
    const [said, tone] = isGone && row.missing ? ["no such queue", "quiet"] : badge(row);
    put(mark, said, tone);
    for (const [id, count] of links) {
      const number = STATES.includes(id) ? row.jobs[STATES.indexOf(id)] : row[id];
      put(count, number === undefined || !row.isRead ? "" : text.count(number), id === "dead" && number ? "bad" : "");
    }
    if (!isCentred && live.state.head) {
      isCentred = true;
      const here = tabs.querySelector("[aria-current]");
      if (here) centre(tabs, here);
    }
    const wanted = live.mayAct(key) ? `${isGone} ${row.paused !== 0} ${row.jobs[3] > 0}` : "";
    if (wanted === actions) return;
    actions = wanted;
    if (!wanted) return buttons.replaceChildren();
    const about = (make) => () => make(rowOf(key));
    const retry = row.jobs[3] > 0 && h("button", { type: "button", onclick: () => retryDead(key) }, "Retry dead jobs");
    const state = STATES.includes(current) ? current : "all";
    const count = (it) => (state === "all" ? it.jobs.reduce((sum, number) => sum + number, 0) : it.jobs[STATES.indexOf(state)]);
    const add = act.button("Add a test job", about(act.add));
    // A queue that is gone can only be begun anew.
    if (isGone) return replace(buttons, add);
    const all = [row.paused ? act.button("Resume", about(act.resume)) : act.button("Pause", about(act.pause)), add, retry, act.button("Purge", () => act.purge(rowOf(key), state, count(rowOf(key))), true)];
    replace(buttons, ...all.filter(Boolean));
  };
}

// The head of a page about all queues.
export function ofAll(main, title, env) {
  main.append(h("h1", {}, title));
  env.trail.append(h("a", { href: "./" }, "Queues"));
  document.title = `${title} – dq`;
  live.see([]);
  return () => {};
}

const TILES = [
  ["Ready", (row, it) => (put(it.value, text.count(row.jobs[1])), put(it.small, row.oldest === null || row.oldest === undefined ? "none waiting" : `oldest ${oldest(row.oldest)[0]}`, oldest(row.oldest)[1]))],
  ["Delayed", (row, it) => (put(it.value, text.count(row.jobs[0])), put(it.small, row.next ? `next ${text.until(Math.max(row.next, live.now()), live.now())}` : row.jobs[0] ? "until signalled" : row.jobs[4] ? `${text.count(row.jobs[4])} blocked` : "none"))],
  ["Reserved", (row, it) => (put(it.value, text.count(row.jobs[2])), put(it.small, live.unseen() ? "clients waiting: not seen here" : `${text.count(row.waiting)} ${row.waiting === 1 ? "client waiting" : "clients waiting"}`))],
  ["Dead", (row, it) => (put(it.value, text.count(row.jobs[3]), row.jobs[3] ? "bad" : ""), put(it.small, live.unseen() ? "" : `${text.count(row.totals[5] ?? 0)} died in total`))],
  ["Delivered a second", (row, it) => (put(it.value, live.unseen() ? "–" : text.rate(row.rates[1])), put(it.small, live.unseen() ? "not seen on a replica" : `${text.rate(row.rates[0])} added, ${text.rate(row.rates[2])} acked`))],
  ["Lateness, p50", (row, it) => (put(it.value, ...lateness(row.late[0])), put(it.small, `p99: ${lateness(row.late[1])[0]}`, lateness(row.late[1])[1]))],
];

const TOTALS = ["Added", "Delivered", "Acknowledged", "Nacked", "Leases expired", "Died", "Deleted", "Expired", "Missed"];

export const rate = ([count, ms]) => (count ? `${text.full(count)} in ${text.millis(ms)}` : "no limit");

// How much of the window of RATE is used.
function rateOf(it, row) {
  const [most] = it.rate;
  if (!most) return [rate(it.rate), ""];
  const used = row.rateUsed ?? 0;
  return [`${rate(it.rate)}, ${text.full(used)} used (${Math.round((100 * used) / most)} %)`, used >= most ? "warn" : ""];
}

// The limits of each group.
export function ofGroups(it) {
  const limits = [];
  if (it.groupmax) limits.push(`${text.full(it.groupmax)} reserved at most`);
  if (it.grouprate[0]) limits.push(rate(it.grouprate));
  if (it.groupfifo) limits.push("in the order of adding");
  return limits.join(", ");
}

// Which done jobs are kept.
function ofDone(it) {
  const limits = [];
  if (it.donelen) limits.push(`${text.full(it.donelen)} at most`);
  if (it.donettl) limits.push(`for ${text.millis(it.donettl)}`);
  if (it.donebytes) limits.push(`${text.bytes(it.donebytes)} at most`);
  return limits.join(", ");
}

const SETTINGS = [
  ["Lease", (it) => text.millis(it.ttr)],
  ["Attempts", (it) => (it.attempts ? text.full(it.attempts) : "no limit")],
  ["Backoff", (it) => (it.backoff.length ? it.backoff.slice(0, 12).map(text.millis).join(", ") + (it.backoff.length > 12 ? " …" : "") : "the server's")],
  ["Max jobs", (it) => (it.maxlen ? text.jobs(it.maxlen) : "no limit")],
  ["Max bytes", (it) => (it.maxbytes ? text.bytes(it.maxbytes) : "no limit")],
  ["Dead jobs kept", (it) => (it.deadlen ? text.full(it.deadlen) : "all")],
  ["Done jobs kept", (it) => ofDone(it) || "only those added with KEEP"],
  ["Failed attempts told", (it) => (it.history ? `the last ${text.full(it.history)} of each job` : "none")],
  ["Ids remembered", (it) => (it.dedupe ? `for ${text.millis(it.dedupe)}` : "no")],
  ["Max reserved", (it) => (it.maxreserved ? text.full(it.maxreserved) : "no limit")],
  ["Rate", rateOf],
  ["Each group", (it) => ofGroups(it) || "no limit"],
];

export function queue(main, about, env) {
  const key = about.queue;
  const update = head(main, key, "overview", env);
  const figures = h("section", { class: "figures", "aria-label": "Figures" });
  const tiles = TILES.map(([title]) => tile(figures, title));
  const why = h("p", { class: "why", role: "status" });
  main.append(why, figures);
  let [set, hold, groups] = [null, null, null];
  // What the chart shows besides its answer.
  let [paused, unseen] = [0, ""];
  const chart = forecast(main, key, about, env.keep, () => ({ set, hold, groups, row: rowOf(key) }));
  const totals = h("dl", { class: "facts" });
  const settings = h("dl", { class: "facts" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const change = act.button("Change", () => act.configure(rowOf(key), set, () => followed.now()));
  main.append(h("div", { class: "two" },
    h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "Totals on this server")), totals),
    h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "Settings"), change), settings, wrong)));
  const numbers = facts(totals, TOTALS);
  const values = facts(settings, SETTINGS.map(([title]) => title));
  const followed = live.follow((signal) => live.look("queue", `queue=${key}`, signal), (answer, error) => {
    put(wrong, error ?? "");
    if (!answer) return;
    [set, hold, groups] = [answer.settings, answer.hold, answer.groups];
    put(why, answer.why ?? "");
    showSettings();
    chart.draw();
  }, { every: 5000 });
  function showSettings() {
    const row = rowOf(key);
    change.hidden = !set || !live.mayAct(key);
    SETTINGS.forEach(([, show], index) => put(values[index], ...(set ? [show(set, row)].flat() : ["–"])));
  }
  return {
    update() {
      update();
      if (!live.state.head) return;
      const row = rowOf(key);
      if (row.isRead) TILES.forEach(([, show], index) => show(row, tiles[index]));
      showSettings();
      if (row.paused !== paused || live.unseen() !== unseen) chart.draw();
      [paused, unseen] = [row.paused, live.unseen()];
      if (row.isRead) TOTALS.forEach((_, index) => put(numbers[index], text.full(row.totals[index] ?? 0)));
    },
    close() {
      chart.close();
      followed.stop();
    },
  };
}

export function facts(list, titles) {
  return titles.map((title) => {
    const value = h("dd", {});
    list.append(h("div", {}, h("dt", {}, title), value));
    return value;
  });
}

