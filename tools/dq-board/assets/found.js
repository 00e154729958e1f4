// The jobs that a filter selects, however long the search takes.
import { h, put, putName } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as filter from "./filter.js";
import { jobLink, rowOf } from "./row.js";

// After so many rows a search pauses until it is told to continue.
const ENOUGH = 50;
const TONES = { dead: "bad", ready: "good", done: "good", reserved: "note" };
const WHEN = { delayed: "due", ready: "due", reserved: "lease expires", dead: "died", blocked: "due", done: "finished" };

function when({ at, state }) {
  if (at === null) return "–";
  return at >= text.LAST ? text.until(at) : `${WHEN[state] ?? ""} ${text.until(at, live.now())}`;
}

// Columns of every list of jobs.
export const NAME = { title: "Id", up: true, by: (job) => job.name };
export const ATTEMPTS = { title: "Attempts", by: (job) => job.attempts, show: (job) => text.full(job.attempts) };
export const SIZE = { title: "Size", by: (job) => job.length, show: (job) => text.bytes(job.length) };
// Of several lines the telling one; all of them, as long as a reason may be, where it is pointed at.
export const worded = (title, of) => ({ title, up: true, by: (job) => of(job) && text.telling(of(job)), show: (job) => [text.telling(of(job) ?? "–"), "", of(job)?.slice(0, 1024)] });
export const exactly = (at) => (at === null ? null : text.at(at));

// Of jobs that belong together only the first is told to whom, and how many there are. `make`: what gets the name.
export function belonging(cell, isFirst, make, name, count) {
  if (cell.hasChildNodes() !== isFirst) cell.replaceChildren(...(isFirst ? [make(), h("span", {})] : []));
  if (!isFirst) return;
  putName(cell.firstChild, name);
  put(cell.lastChild, ` (${text.jobs(count)})`);
}

const QUEUE = { title: "Queue", class: "fq", up: true, by: (job) => job.queue.name, make: ({ queue }) => putName(h("a", { href: `queue?queue=${queue.key}` }), queue.name) };

// In a list of several queues (no `key`) each job's queue is named.
export function columns(key) {
  return [
    ...(key ? [] : [QUEUE]),
    { ...NAME, make: (job) => jobLink(key ?? job.queue.key, job) },
    { title: "State", up: true, by: (job) => job.state, show: (job) => [job.state, TONES[job.state]] },
    { title: "When", by: (job) => job.at, show: (job) => [when(job), "", exactly(job.at)] },
    ATTEMPTS,
    SIZE,
    worded("Label", (job) => job.label),
    worded("Reason, result or payload", (job) => job.reason ?? job.result ?? job.payload),
  ];
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

export const named = (job) => `${job.queue?.key} ${job.id}`;

// Searches until there are enough jobs, then continues on request.
export function search({ question, done, told, end }, page) {
  const abort = new AbortController();
  const jobs = new Map();
  const stop = h("button", { type: "button", onclick: () => { stopped = true; } }, "Stop");
  const on = h("button", { type: "button", onclick: () => run() }, "Search further");
  const how = h("p", { class: "note", role: "status" });
  const bar = h("progress", { max: "1", "aria-label": "Searched" });
  let cursor = "";
  let share = 0;
  let stopped = false;

  function tell(running, more) {
    bar.value = more ? share : 1;
    put(how, `${text.full(jobs.size)} found, ${more ? told(share) : end}.`);
    page.further.replaceChildren(how, ...(running ? [bar, stop] : more ? [on] : []));
  }

  async function run() {
    const enough = jobs.size + ENOUGH;
    stopped = false;
    try {
      do {
        tell(true, true);
        const found = await live.look("find", `${question}${cursor ? `&cursor=${cursor}` : ""}`, abort.signal);
        cursor = found.more;
        share = done(found);
        for (const job of found.jobs) if (!jobs.has(named(job))) jobs.set(named(job), job);
        page.show([...jobs.values()]);
        page.empty.hidden ||= Boolean(cursor);
      } while (cursor && jobs.size < enough && !stopped);
      put(page.wrong, "");
      tell(false, cursor);
    } catch (error) {
      if (abort.signal.aborted) return;
      put(page.wrong, error.message);
      page.further.replaceChildren(on);
    }
  }

  run();
  return { stop: () => abort.abort() };
}
