// Who works: connections with their jobs.
import { h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, pages } from "./queue.js";
import { rowOf } from "./row.js";

const COLUMNS = ["Who", "Job", "Attempt", "Since", "Lease ends"];

export function workers(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "workers", env);
  const shown = pages(main, "Who works", COLUMNS, "No job of this queue is being worked on.");
  const page = `queue=${key}${about.from ? `&from=${about.from}&skip=${about.skip ?? 0}` : ""}`;
  let found = null;
  const followed = live.follow((signal) => live.look("workers", page, signal), take, { every: 5000 });

  function take(answer, error) {
    put(shown.wrong, error ?? "");
    if (!answer) return;
    found = answer;
    update();
  }

  // A line for each job; the name stands with the first one of its connection.
  function lines() {
    return found.clients.flatMap(({ name, jobs }) => jobs.map((job, index) => ({ ...job, who: index ? "" : `${name ?? "not known"} (${text.jobs(jobs.length)})`, known: name !== null })));
  }

  function line(job) {
    return h("tr", {}, h("td", {}), h("td", {}, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)), h("td", {}), h("td", {}), h("td", {}));
  }

  function fill(element, job) {
    const [who, , attempt, since, until] = element.children;
    const now = live.now();
    put(who, job.who, job.known ? "" : "quiet");
    put(attempt, text.full(job.attempts));
    put(since, text.until(job.since, now));
    put(until, text.until(job.until, now), job.until < now ? "bad" : "");
  }

  function update() {
    updateHead();
    if (!found) return;
    list(shown.body, lines(), (job) => job.id, line, fill);
    shown.filled(found.clients.length > 0);
    const all = rowOf(key).jobs[2];
    const isPart = found.more || about.from;
    put(shown.note, isPart ? `${text.full(found.read)} of ${text.jobs(all)} that are reserved, by the end of the lease.` : "");
    shown.links([about.from && ["First jobs", `workers?queue=${key}`], found.more && ["More jobs", `workers?queue=${key}&from=${found.more.from}&skip=${found.more.skip}`]]);
  }

  return {
    update,
    close: () => followed.stop(),
  };
}
