// Jobs that wait for a signal, by its name, and sending it.
import { h, put, replace } from "./dom.js";
import * as act from "./act.js";
import { page } from "./columns.js";
import { belonging, NAME } from "./found.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head } from "./queue.js";
import { jobLink } from "./row.js";

export function signals(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "signals", env);
  const send = (label, what) => h("button", { type: "button", onclick: () => act.dialog(what(() => followed.now())) }, label);

  const link = (signal) => h("a", { href: `jobs?queue=${key}&state=delayed&awaits=${signal.id}` });

  function offer(cell, { id, name, signal, isFirst }) {
    const [one, all] = [live.mayAct(key), isFirst && signal.jobs.length > 1 ? `Send to ${signal.jobs.length === signal.count ? "all" : "the first"} ${signal.jobs.length}` : ""];
    const wanted = one ? `${all} ${signal.jobs.map((job) => job.id)}` : "";
    if (cell.dataset.acts === wanted) return;
    cell.dataset.acts = wanted;
    replace(cell, ...(one ? [send("Send", (done) => act.signal(key, { id, name, signal }, done))] : []), ...(one && all ? [send(all, (done) => act.signalAll(key, signal, done))] : []));
  }

  const shown = page("Jobs that wait for a signal", [
    { title: "Signal", class: "whose", up: true, by: ({ signal }) => signal.name, fill: (cell, { signal, isFirst }) => belonging(cell, isFirst, () => link(signal), signal.name, signal.count) },
    { ...NAME, title: "Job", make: (job) => jobLink(key, job) },
    { title: "Goes on without it", up: true, by: ({ due }) => due, show: ({ due }) => (due >= text.LAST ? "never" : text.until(due, live.now())) },
    { title: "Send", class: "send", fill: offer },
  ], env, { key: ({ id, signal }) => `${id} ${signal.id}`, group: ({ signal }) => signal.id, none: "No job waits for a signal. DQ.NACK with AWAIT lets one wait." });
  main.append(...shown.parts);
  const followed = shown.asked("signals", `queue=${key}${about.cursor ? `&cursor=${about.cursor}` : ""}`, (found) => {
    shown.show(found.signals.flatMap((signal) => signal.jobs.map((job) => ({ ...job, signal }))));
    const more = found.kinds - found.signals.length;
    put(shown.note, [more > 0 && `And ${text.full(more)} other signals.`, found.more && `Of ${text.jobs(found.seen)} checked.`].filter(Boolean).join(" "));
    shown.links([about.cursor && ["First jobs", { cursor: "" }], found.more && ["Search further", { cursor: found.more }]]);
  }, { every: 10_000 });
  return { update: () => { updateHead(); followed.again(); }, close: followed.stop };
}
