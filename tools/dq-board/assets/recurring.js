// Recurring jobs, with their next runs.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import * as rules from "./rules.js";
import { head } from "./queue.js";
import { rowOf } from "./row.js";
import { zone } from "./zone.js";

export function recurring(main, about, env) {
  const key = about.queue;
  const update = head(main, key, "recurring", env);
  const body = h("tbody", {});
  const titles = ["Id", "Rule", "Next runs", "Runs", "State"];
  const table = h("table", { class: "jobs", "aria-label": "Recurring jobs", hidden: true }, h("thead", {}, h("tr", {}, ...titles.map((name, index) => h("th", { scope: "col", class: `r${index}` }, name)))), body);
  const empty = h("div", { class: "empty", hidden: true });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const further = h("div", { class: "further" });
  const add = act.button("Add a recurring job", () => rules.add(rowOf(key), () => env.go(location.href, true)));
  const tools = h("div", { class: "tools" }, zone(() => env.go(location.href, true), "A rule's own time zone is part of the rule. "), add);
  main.append(tools, wrong, table, empty, further);
  const abort = new AbortController();
  seek("");

  async function seek(cursor) {
    further.replaceChildren(h("p", { class: "note" }, "Searching."));
    try {
      const found = await live.look("recurring", `queue=${key}${cursor ? `&cursor=${cursor}` : ""}`, abort.signal);
      found.jobs.sort((a, b) => a.rule.next[0] - b.rule.next[0]);
      body.append(...found.jobs.map(line));
      further.replaceChildren();
      if (found.more) further.append(h("button", { type: "button", onclick: () => seek(found.more) }, "Search further"));
      table.hidden = !body.children.length;
      empty.hidden = !table.hidden;
      put(empty, found.more ? "No recurring jobs found so far." : "No recurring jobs. DQ.ADD with EVERY or CRON adds one.");
    } catch (error) {
      if (abort.signal.aborted) return;
      put(wrong, error.message);
      further.replaceChildren();
    }
  }

  function line(job) {
    const next = job.rule.next.map((instant) => h("span", { class: "run" }, text.at(instant)));
    return h("tr", { "data-line": "" }, h("td", { class: "r0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)),
      h("td", { class: "r1" }, job.rule.text), h("td", { class: "r2" }, ...next),
      h("td", { class: "r3" }, text.full(job.rule.runs) + (job.rule.times ? ` of ${text.full(job.rule.times)}` : "")), h("td", { class: "r4" }, job.state));
  }

  const offer = () => {
    update();
    add.hidden = !live.mayAct(key);
  };
  return { update: offer, close: () => abort.abort() };
}
