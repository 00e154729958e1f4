// Recurring jobs, of one queue or of all, with their last and next runs.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import * as rules from "./rules.js";
import { head, ofAll, pages } from "./queue.js";
import { rowOf } from "./row.js";
import { zone } from "./zone.js";

const TITLES = ["Id", "Rule", "Next runs", "Last run", "Runs", "State"];
const NONE = "No recurring jobs. DQ.ADD with EVERY or CRON adds one.";

// How the last run that the queue keeps ended.
function outcome(last) {
  if (!last) return ["–", "quiet"];
  const why = last.reason ? `: ${last.reason}` : "";
  const ran = last.ran === null ? "" : `, ran for ${text.millis(last.ran)}`;
  return [`${last.state}${last.state === "dead" ? why : ran}, ${text.until(last.at, live.now())}`, last.state === "dead" ? "bad" : "good"];
}

// The next run in words, and its instant; of the others only that.
function runs(next) {
  return next.map((instant, index) => h("span", { class: "run" }, index ? text.at(instant) : `${text.until(instant, live.now())}: ${text.at(instant)}`));
}

export function recurring(main, about, env) {
  const key = about.queue;
  const update = key ? head(main, key, "recurring", env) : ofAll(main, "Recurring jobs", env);
  const add = act.button("Add a recurring job", () => rules.add(rowOf(key), again));
  const again = () => env.go(location.href, true);
  main.append(h("div", { class: "tools" }, zone(again, "A rule's own time zone is part of the rule. "), key ? add : ""));
  const page = pages(main, "Recurring jobs", key ? TITLES : ["Queue", ...TITLES], NONE, "r");
  const further = page.further;
  const abort = new AbortController();
  const buttons = [];
  seek("");

  async function seek(cursor) {
    further.replaceChildren(h("p", { class: "note" }, "Searching."));
    try {
      const found = await live.look("recurring", `${key ? `queue=${key}` : ""}${cursor ? `&cursor=${cursor}` : ""}`, abort.signal);
      found.jobs.sort((a, b) => (a.rule.next[0] ?? Infinity) - (b.rule.next[0] ?? Infinity));
      page.body.append(...found.jobs.map(line));
      further.replaceChildren();
      if (found.more) further.append(h("button", { type: "button", onclick: () => seek(found.more) }, "Search further"));
      page.filled(page.body.children.length > 0, found.more ? "No recurring jobs found so far." : NONE);
      offer();
    } catch (error) {
      if (abort.signal.aborted) return;
      put(page.wrong, error.message);
      further.replaceChildren();
    }
  }

  function line(job) {
    const at = job.queue.key;
    const [ended, tone] = outcome(job.last);
    const last = h("span", { "data-tone": tone }, ended);
    const now = job.state === "delayed" ? act.button("Run now", () => act.runNow(at, job, again)) : null;
    if (now) buttons.push([at, now]);
    const cells = [
      h("a", { href: `job?queue=${at}&id=${job.id}` }, job.name), job.rule.text, runs(job.rule.next),
      job.last ? h("a", { href: `job?queue=${at}&id=${job.last.id}` }, last) : last,
      `${text.full(job.rule.runs)}${job.rule.times ? ` of ${text.full(job.rule.times)}` : ""}`, now ?? job.state,
    ];
    if (!key) cells.unshift(h("a", { href: `recurring?queue=${at}` }, job.queue.name));
    return h("tr", { "data-line": "" }, ...cells.map((cell, index) => h("td", { class: `r${index + (key ? 0 : -1)}` }, ...[cell].flat())));
  }

  function offer() {
    update();
    add.hidden = !live.mayAct(key);
    for (const [at, button] of buttons) button.hidden = !live.mayAct(at);
  }

  return { update: offer, close: () => abort.abort() };
}
