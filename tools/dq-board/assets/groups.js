// Groups: those with most waiting jobs, what each may have of its own, and actions on one.
import { h, put, putName, replace } from "./dom.js";
import * as act from "./act.js";
import { ofGroup } from "./bulk.js";
import { page } from "./columns.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, ofGroups, rate } from "./queue.js";
import { rowOf } from "./row.js";
import { decode } from "./table.js";

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
const toned = (count, tone = "") => (count ? tone : "quiet");

// What its rate allows at most: its own, or that of the queue.
const most = (group, settings) => (group.rate ?? settings?.grouprate ?? [0])[0];

function columns(key, settings, fill) {
  const used = (group) => (most(group, settings()) ? group.used / most(group, settings()) : null);
  const isFull = ({ max, reserved }) => ((max ?? settings()?.groupmax) && reserved >= (max ?? settings().groupmax)) || (settings()?.groupfifo && reserved);
  return [
    { title: "Group", up: true, by: (group) => group.name, make: (group) => putName(h("a", { href: `jobs?queue=${key}&state=ready&group=${group.id}&all=1` }), group.name) },
    { title: "Waiting", by: (group) => group.waiting, show: ({ waiting }) => [text.full(waiting), toned(waiting)] },
    { title: "Reserved", by: (group) => group.reserved, show: (group) => [text.full(group.reserved) + (isFull(group) ? " (at its limit)" : ""), toned(group.reserved)] },
    { title: "Dead", by: (group) => group.dead, show: ({ dead }) => [dead ? text.full(dead) : "–", toned(dead, "bad")] },
    { title: "Oldest ready", by: ({ oldest }) => oldest && -oldest, show: ({ oldest }) => [oldest === null ? "–" : text.millis(Math.max(live.now() - oldest, 0)), toned(oldest)] },
    { title: "Share", by: (group) => group.share ?? group.weight, show: (group) => share(group) || "–" },
    { title: "Of its own", up: true, by: (group) => limits(group) || null, show: (group) => [limits(group) || "–", group.paused ? "warn" : ""] },
    { title: "In the window", by: used, show: (group) => [used(group) === null ? "–" : `${text.full(group.used)} of ${text.full(most(group, settings()))}`, used(group) >= 1 ? "warn" : ""] },
    { title: "Actions", fill },
  ];
}

export function groups(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "groups", env);
  const search = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search by name", spellcheck: "false" });
  search.value = decode(about.part);
  const note = h("p", { class: "note" });
  const which = h("a", { class: "button", href: `groups?queue=${key}${about.set ? "" : "&set=1"}` }, about.set ? "Those with jobs" : "Those with settings");
  const again = () => followed.now();
  const fresh = h("button", { type: "button", hidden: true, onclick: () => act.dialog(act.setGroup(rowOf(key), { id: "" }, again)) }, "Set a group");
  const go = () => env.go(env.at({ part: encodeURIComponent(search.value), cursor: "", set: "" }));
  const shown = page("Groups", columns(key, () => settings, offer), env, { letter: "g" });
  main.append(h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); go(); } }, search, h("button", { type: "submit" }, "Search"), which, fresh, note), ...shown.parts);
  const question = ["queue", "set", "part", "cursor"].filter((word) => about[word]).map((word) => `${word}=${about[word]}`).join("&");
  const current = new Map();
  let settings = null;
  const followed = shown.asked("groups", question, show, { every: 5000, weight: (it) => it.weight });

  function buttons(group) {
    const about = (make) => () => make(rowOf(key), current.get(group.id), again);
    const bulk = (name, state, what) => h("button", { type: "button", class: what === "cancel" ? "danger-link" : "", onclick: () => ofGroup(key, group.id, state, what, again) }, name);
    const hasOwn = group.paused || [group.weight, group.max, group.rate, group.maxlen].some((it) => it !== null);
    return [act.button("Set", about(act.setGroup)), group.paused ? act.button("Resume", about(act.resumeGroup)) : act.button("Pause", about(act.pauseGroup)),
      hasOwn && act.button("Clear", about(act.clearGroup)), bulk("Retry dead", "dead", "kick"), bulk("Cancel", "all", "cancel")].filter(Boolean);
  }

  function offer(cell, group) {
    const wanted = live.mayAct(key) ? `${group.paused !== 0} ${limits(group)} ${group.weight}` : "";
    if (cell.dataset.acts !== wanted) replace(cell, ...(wanted ? buttons(group) : []));
    cell.dataset.acts = wanted;
  }

  function update() {
    updateHead();
    // What may be done is known only once the stream has said it.
    fresh.hidden = !live.mayAct(key);
    followed.again();
  }

  function show(last) {
    settings = last.settings;
    for (const group of last.groups) current.set(group.id, group);
    const each = settings ? ofGroups(settings) : "";
    put(note, [each && `Each group: ${each}.`, last.sample && `Dead and oldest: of the first ${text.full(last.sample)} dead and ready jobs.`].filter(Boolean).join(" "));
    shown.show(last.groups, about.part || about.cursor ? "No group matches." : about.set ? "No group has settings of its own. DQ.GROUPSET gives it some." : "No job of this queue has a group. DQ.ADD with GROUP names one, and groups take turns.");
    const count = last.groups.length;
    const isPart = count < last.seen || last.more || about.cursor;
    shown.links([isPart && [`The ${text.full(count)} with most waiting jobs, of ${text.full(last.seen)} checked.`, null], about.cursor && ["First groups", { cursor: "" }], last.more && ["More groups", { cursor: last.more }]]);
  }

  return { update, close: followed.stop };
}
