// Who works: connections with their jobs.
import { h, put } from "./dom.js";
import { page } from "./columns.js";
import { ATTEMPTS, belonging, NAME } from "./found.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head } from "./queue.js";
import { jobLink, rowOf } from "./row.js";

export function workers(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "workers", env);
  // As of the last answer: what ended since then is still shown, and grows no older.
  let read = 0;
  const until = (instant) => text.until(instant, read);
  const shown = page("Who works", [
    { title: "Who", class: "whose", up: true, by: (job) => job.who.name, fill: (cell, { who, isFirst }) => belonging(cell, isFirst, () => h("span", { "data-tone": who.name === null ? "quiet" : "" }), who.name ?? "not known", who.jobs.length) },
    { ...NAME, title: "Job", make: (job) => jobLink(key, job) },
    { ...ATTEMPTS, title: "Attempt" },
    { title: "Since", up: true, by: (job) => job.since, show: (job) => until(job.since) },
    { title: "Lease ends", up: true, by: (job) => job.until, show: (job) => [until(job.until), job.until < read ? "bad" : ""] },
  ], env, { group: (job) => job.who.name, none: "No job of this queue is being worked on." });
  main.append(...shown.parts);
  const question = `queue=${key}${about.from ? `&from=${about.from}&skip=${about.skip ?? 0}` : ""}`;
  const followed = shown.asked("workers", question, (found) => {
    read = found.now;
    shown.show(found.clients.flatMap((who) => who.jobs.map((job) => ({ ...job, who }))));
    const all = rowOf(key).jobs[2];
    const part = found.more || about.from ? `: ${text.full(found.read)} of ${text.jobs(all)} that are reserved, by the end of the lease` : "";
    put(shown.note, `At ${text.at(read)}${part}.`);
    shown.links([about.from && ["First jobs", { from: "", skip: "" }], found.more && ["More jobs", found.more]]);
  }, { every: 5000 });
  return { update: () => { updateHead(); followed.again(); }, close: followed.stop };
}
