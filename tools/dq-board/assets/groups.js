// Groups: those with most waiting jobs, what each may have of its own, and actions on one.
import { attribute, h, list, put } from "./dom.js";
import * as act from "./act.js";
import { ofGroup } from "./bulk.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, ofGroups, rate } from "./queue.js";
import { rowOf } from "./row.js";
import { decode } from "./table.js";

const COLUMNS = ["Group", "Waiting", "Reserved", "Dead", "Oldest ready", "Share", "Of its own", "In the window", "Actions"];

// The limits that a group has of its own.
function limits(group) {
  const all = [];
  if (group.paused) all.push(group.paused < 0 ? "paused" : `paused, goes on ${text.until(group.paused, live.now())}`);
  if (group.max !== null) all.push(group.max ? `${text.full(group.max)} reserved at most` : "any number reserved");
  if (group.rate) all.push(group.rate[0] ? rate(group.rate) : "no rate");
  if (group.maxlen !== null) all.push(group.maxlen ? `${text.jobs(group.maxlen)} at most` : "any number of jobs");
  return all.join(", ");
}

const share = (group) => [group.weight === null ? "" : `weight ${text.full(group.weight)}`, group.share === undefined ? "" : `${Math.round(100 * group.share)} %`].filter(Boolean).join(", ");

export function groups(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "groups", env);
  const search = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search by name", spellcheck: "false" });
  search.value = decode(about.part);
  const note = h("p", { class: "note" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", "aria-label": "Groups", hidden: true }, h("thead", {}, h("tr", {}, ...COLUMNS.map((name, index) => h("th", { scope: "col", class: `g${index}` }, name)))), body);
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  const which = h("a", { class: "button", href: about.set ? `groups?queue=${key}` : `groups?queue=${key}&set=1` }, about.set ? "Those with jobs" : "Those with settings");
  const fresh = h("button", { type: "button", hidden: true, onclick: () => act.dialog(act.setGroup(rowOf(key), { id: "" }, again)) }, "Set a group");
  main.append(h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); go(); } }, search, h("button", { type: "submit" }, "Search"), which, fresh, note), wrong, table, empty, further);
  const page = address(about.cursor);
  const current = new Map();
  let settings = null;
  let last = null;
  const followed = live.follow((signal) => live.look("groups", page, signal), take, { every: 5000, weight: (it) => it.weight });
  const again = () => followed.now();

  function address(cursor) {
    return `queue=${key}${about.set ? "&set=1" : ""}${about.part ? `&part=${about.part}` : ""}${cursor ? `&cursor=${cursor}` : ""}`;
  }

  function go() {
    env.go(search.value ? `groups?queue=${key}&part=${encodeURIComponent(search.value)}` : `groups?queue=${key}`);
  }

  function line(group) {
    const jobs = `jobs?queue=${key}&state=ready&group=${group.id}&all=1`;
    return h("tr", {}, h("td", { class: "g0" }, h("a", { href: jobs }, group.name)), ...[1, 2, 3, 4, 5, 6, 7, 8].map((index) => h("td", { class: `g${index}` })));
  }

  function buttons(group) {
    const about = (make) => () => make(rowOf(key), current.get(group.id), again);
    const bulk = (name, state, what) => h("button", { type: "button", class: what === "cancel" ? "danger-link" : "", onclick: () => ofGroup(key, group.id, state, what, again) }, name);
    const hasOwn = group.paused || [group.weight, group.max, group.rate, group.maxlen].some((it) => it !== null);
    return [act.button("Set", about(act.setGroup)), group.paused ? act.button("Resume", about(act.resumeGroup)) : act.button("Pause", about(act.pauseGroup)),
      hasOwn && act.button("Clear", about(act.clearGroup)), bulk("Retry dead", "dead", "kick"), bulk("Cancel", "all", "cancel")].filter(Boolean);
  }

  function fill(element, group) {
    const [, waiting, reserved, dead, oldest, shared, own, used, acts] = element.children;
    const max = group.max ?? settings?.groupmax;
    const full = (max && group.reserved >= max) || (settings?.groupfifo && group.reserved);
    const [most] = group.rate ?? settings?.grouprate ?? [0];
    put(waiting, text.full(group.waiting), group.waiting ? "" : "quiet");
    put(reserved, text.full(group.reserved) + (full ? " (at its limit)" : ""), group.reserved ? "" : "quiet");
    put(dead, group.dead ? text.full(group.dead) : "–", group.dead ? "bad" : "quiet");
    put(oldest, group.oldest === null ? "–" : text.millis(Math.max(live.now() - group.oldest, 0)), group.oldest === null ? "quiet" : "");
    put(shared, share(group) || "–");
    put(own, limits(group) || "–", group.paused ? "warn" : "");
    put(used, most ? `${text.full(group.used)} of ${text.full(most)}` : "–", most && group.used >= most ? "warn" : "");
    const wanted = live.mayAct(key) ? `${group.paused !== 0} ${limits(group)} ${group.weight}` : "";
    if (element.dataset.acts !== wanted) acts.replaceChildren(...(wanted ? buttons(group) : []));
    element.dataset.acts = wanted;
  }

  function take(found, error) {
    put(wrong, error ?? "");
    if (!found) return;
    last = found;
    settings = found.settings;
    for (const group of found.groups) current.set(group.id, group);
    const each = settings ? ofGroups(settings) : "";
    put(note, [each && `Each group: ${each}.`, found.sample && `Dead and oldest: of the first ${text.full(found.sample)} dead and ready jobs.`].filter(Boolean).join(" "));
    fresh.hidden = !live.mayAct(key);
    list(body, found.groups, (group) => group.id, line, fill);
    table.hidden = found.groups.length === 0;
    empty.hidden = !table.hidden;
    put(empty, about.part || about.cursor ? "No group matches." : about.set ? "No group has settings of its own. DQ.GROUPSET gives it some." : "No job of this queue has a group. DQ.ADD with GROUP names one, and groups take turns.");
    const links = [];
    if (about.cursor) links.push(["First groups", `groups?${address("")}`]);
    if (found.more) links.push(["More groups", `groups?${address(found.more)}`]);
    const shown = found.groups.length;
    const told = shown < found.seen || found.more || about.cursor ? `The ${text.full(shown)} with most waiting jobs, of ${text.full(found.seen)} checked.` : "";
    list(further, [...(told ? [[told, null]] : []), ...links], ([name]) => name, ([name, href]) => (href ? h("a", { class: "button", href }, name) : h("p", { class: "note" }, name)), (link, [, href]) => href && attribute(link, "href", href));
  }

  return {
    // What may be done is known only once the stream has said it.
    update() {
      updateHead();
      if (last) take(last);
    },
    close: () => followed.stop(),
  };
}
