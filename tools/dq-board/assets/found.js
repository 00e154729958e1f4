// The jobs that a filter selects, however long the search takes.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as filter from "./filter.js";
import { rowOf } from "./row.js";

// After so many rows a search pauses until it is told to continue.
const ENOUGH = 50;
const TONES = { dead: "bad", ready: "good", done: "good", reserved: "note" };
const WHEN = { delayed: "due", ready: "due", reserved: "lease expires", dead: "died", blocked: "due", done: "finished" };
const TITLES = ["Id", "State", "When", "Attempts", "Size", "Label", "Reason, result or payload"];

export function titles() {
  return TITLES.map((title, index) => h("th", { scope: "col", class: `f${index}` }, title));
}

export function line(key, box, job) {
  const at = job.at === null ? "–" : `${WHEN[job.state] ?? ""} ${text.until(job.at, live.now())}`;
  const last = job.reason ?? job.result ?? job.payload;
  return h("tr", { "data-line": "" }, box(job),
    h("td", { class: "f0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)),
    h("td", { class: "f1", "data-tone": TONES[job.state] ?? "" }, job.state),
    h("td", { class: "f2", title: job.at === null ? null : text.at(job.at) }, at),
    h("td", { class: "f3" }, text.full(job.attempts)), h("td", { class: "f4" }, text.bytes(job.length)),
    h("td", { class: "f5", title: job.label }, job.label ?? "–"),
    h("td", { class: "f6", title: last.slice(0, 300) }, last));
}

// Searches until there are enough rows, then continues on request.
export function search(key, about, state, { rows, further, wrong, empty, shown }) {
  const abort = new AbortController();
  const seen = new Set();
  const stop = h("button", { type: "button", onclick: () => { stopped = true; } }, "Stop");
  const on = h("button", { type: "button", onclick: () => run() }, "Search further");
  const how = h("p", { class: "note", role: "status" });
  const bar = h("progress", { max: "1", "aria-label": "Searched" });
  let cursor = "";
  let looked = 0;
  let stopped = false;

  const all = () => {
    const counts = rowOf(key).jobs;
    return counts.reduce((sum, count) => sum + count, 0);
  };

  // The server looks at jobs of all states, even if only one is searched.
  function tell(running, more) {
    const share = more ? Math.min(looked / Math.max(all(), 1), 0.99) : 1;
    bar.value = share;
    const part = more ? `about ${Math.floor(share * 100)} % of ${text.jobs(all())} searched` : "all jobs searched";
    put(how, `${text.full(seen.size)} found, ${part}.`);
    further.replaceChildren(how, ...(running ? [bar, stop] : more ? [on] : []));
  }

  async function run() {
    const enough = seen.size + ENOUGH;
    stopped = false;
    try {
      do {
        tell(true, true);
        const found = await live.look("find", `queue=${key}&${filter.question(about, state)}${cursor ? `&cursor=${cursor}` : ""}`, abort.signal);
        cursor = found.more;
        looked += found.looked;
        const fresh = found.jobs.filter((job) => !seen.has(job.id));
        for (const job of fresh) seen.add(job.id);
        if (fresh.length) rows(fresh);
      } while (cursor && seen.size < enough && !stopped);
      put(wrong, "");
      tell(false, cursor);
      empty.hidden = seen.size > 0 || Boolean(cursor);
      shown([...seen], !cursor);
    } catch (error) {
      if (abort.signal.aborted) return;
      put(wrong, error.message);
      further.replaceChildren(on);
    }
  }

  run();
  return { stop: () => abort.abort() };
}

