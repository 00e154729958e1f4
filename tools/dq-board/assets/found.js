// The jobs that a filter selects, however long the search takes.
import { attribute, h, put } from "./dom.js";
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

// `box`: to choose it; null in a list of several queues, which names the queue instead.
export function line(key, box, job) {
  const at = job.at === null ? "–" : `${WHEN[job.state] ?? ""} ${text.until(job.at, live.now())}`;
  const last = job.reason ?? job.result ?? job.payload;
  return h("tr", { "data-line": "" }, box ? box(job) : h("td", { class: "fq" }, h("a", { href: `queue?queue=${key}` }, job.queue.name)),
    h("td", { class: "f0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)),
    h("td", { class: "f1", "data-tone": TONES[job.state] ?? "" }, job.state),
    h("td", { class: "f2", "data-sort": job.at ?? 0, title: job.at === null ? null : text.at(job.at) }, at),
    h("td", { class: "f3", "data-sort": job.attempts }, text.full(job.attempts)), h("td", { class: "f4", "data-sort": job.length }, text.bytes(job.length)),
    h("td", { class: "f5", title: job.label }, job.label ?? "–"),
    h("td", { class: "f6", title: last.slice(0, 300) }, last));
}

// A table whose columns sort the rows that it has; the largest, or the first letter, comes first.
export function sorted(table) {
  const body = table.tBodies[0];
  const watch = new MutationObserver(order);
  let by = null;
  let down = 1;
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, index) => {
    if (head.classList.contains("pick")) return;
    head.replaceChildren(h("button", { type: "button", class: "sort", onclick: () => { down = by === index ? -down : 1; by = index; order(); } }, head.textContent));
  });
  const compare = (a, b) => (a.dataset.sort === undefined ? a.textContent.localeCompare(b.textContent) : b.dataset.sort - a.dataset.sort);

  function order() {
    if (by === null) return;
    watch.disconnect();
    body.append(...[...body.rows].sort((a, b) => down * compare(a.cells[by], b.cells[by])));
    heads.forEach((head, index) => attribute(head, "aria-sort", index === by ? (down > 0 ? "descending" : "ascending") : null));
    watch.observe(body, { childList: true });
  }

  watch.observe(body, { childList: true });
  return table;
}

// How far a search in one queue is.
export function inQueue(key, about, state) {
  // The server looks at jobs of all states, even if only one is searched.
  const all = () => rowOf(key).jobs.reduce((sum, count) => sum + count, 0);
  let looked = 0;
  return {
    question: `queue=${key}&${filter.question(about, state)}`,
    done(found) {
      looked += found.looked;
      return Math.min(looked / Math.max(all(), 1), 0.99);
    },
    told: (share) => `about ${Math.floor(share * 100)} % of ${text.jobs(all())} searched`,
    end: "all jobs searched",
  };
}

// Searches until there are enough rows, then continues on request.
export function search({ question, done, told, end }, { rows, further, wrong, empty, shown = () => {} }) {
  const abort = new AbortController();
  const [seen, ids] = [new Set(), []];
  const stop = h("button", { type: "button", onclick: () => { stopped = true; } }, "Stop");
  const on = h("button", { type: "button", onclick: () => run() }, "Search further");
  const how = h("p", { class: "note", role: "status" });
  const bar = h("progress", { max: "1", "aria-label": "Searched" });
  let cursor = "";
  let share = 0;
  let stopped = false;

  function tell(running, more) {
    bar.value = more ? share : 1;
    put(how, `${text.full(seen.size)} found, ${more ? told(share) : end}.`);
    further.replaceChildren(how, ...(running ? [bar, stop] : more ? [on] : []));
  }

  async function run() {
    const enough = seen.size + ENOUGH;
    stopped = false;
    try {
      do {
        tell(true, true);
        const found = await live.look("find", `${question}${cursor ? `&cursor=${cursor}` : ""}`, abort.signal);
        cursor = found.more;
        share = done(found);
        const named = (job) => `${job.queue?.key} ${job.id}`;
        const fresh = found.jobs.filter((job) => !seen.has(named(job)));
        for (const job of fresh) seen.add(named(job));
        for (const job of fresh) ids.push(job.id);
        if (fresh.length) rows(fresh);
      } while (cursor && seen.size < enough && !stopped);
      put(wrong, "");
      tell(false, cursor);
      empty.hidden = seen.size > 0 || Boolean(cursor);
      shown(ids);
    } catch (error) {
      if (abort.signal.aborted) return;
      put(wrong, error.message);
      further.replaceChildren(on);
    }
  }

  run();
  return { stop: () => abort.abort() };
}

