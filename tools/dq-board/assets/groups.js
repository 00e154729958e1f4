// Groups: those with most waiting jobs.
import { attribute, h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, ofGroups } from "./queue.js";
import { decode } from "./table.js";

export function groups(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "groups", env);
  const search = h("input", { type: "search", placeholder: "Search by name", "aria-label": "Search by name", spellcheck: "false" });
  search.value = decode(about.part);
  const limits = h("p", { class: "note" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", "aria-label": "Groups", hidden: true }, h("thead", {}, h("tr", {}, ...["Group", "Waiting", "Reserved"].map((name, index) => h("th", { scope: "col", class: `g${index}` }, name)))), body);
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  main.append(h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); go(); } }, search, h("button", { type: "submit" }, "Search"), limits), wrong, table, empty, further);
  const page = address(about.cursor);
  let settings = null;
  const followed = live.follow((signal) => live.look("groups", page, signal), take, { every: 5000 });

  function address(cursor) {
    return `queue=${key}${about.part ? `&part=${about.part}` : ""}${cursor ? `&cursor=${cursor}` : ""}`;
  }

  function go() {
    env.go(search.value ? `groups?queue=${key}&part=${encodeURIComponent(search.value)}` : `groups?queue=${key}`);
  }

  function line(group) {
    return h("tr", {}, h("td", { class: "g0" }, group.name), h("td", { class: "g1" }), h("td", { class: "g2" }));
  }

  function fill(element, group) {
    const [, waiting, reserved] = element.children;
    const full = settings && ((settings.groupmax && group.reserved >= settings.groupmax) || (settings.groupfifo && group.reserved));
    put(waiting, text.full(group.waiting), group.waiting ? "" : "quiet");
    put(reserved, text.full(group.reserved) + (full ? " (at its limit)" : ""), group.reserved ? "" : "quiet");
  }

  function take(found, error) {
    put(wrong, error ?? "");
    if (!found) return;
    settings = found.settings;
    const each = settings ? ofGroups(settings) : "";
    put(limits, each ? `Each group: ${each}.` : "");
    list(body, found.groups, (group) => group.id, line, fill);
    table.hidden = found.groups.length === 0;
    empty.hidden = !table.hidden;
    put(empty, about.part || about.cursor ? "No group matches." : "No job of this queue has a group. DQ.ADD with GROUP names one, and groups take turns.");
    const links = [];
    if (about.cursor) links.push(["First groups", `groups?${address("")}`]);
    if (found.more) links.push(["More groups", `groups?${address(found.more)}`]);
    const shown = found.groups.length;
    const note = shown < found.seen || found.more || about.cursor ? `The ${text.full(shown)} with most waiting jobs, of ${text.full(found.seen)} checked.` : "";
    list(further, [...(note ? [[note, null]] : []), ...links], ([name]) => name, ([name, href]) => (href ? h("a", { class: "button", href }, name) : h("p", { class: "note" }, name)), (link, [, href]) => href && attribute(link, "href", href));
  }

  return {
    update: updateHead,
    close: () => followed.stop(),
  };
}
