// Jobs that wait for a signal, by its name, and sending it.
import { h, put } from "./dom.js";
import * as act from "./act.js";
import { page } from "./columns.js";
import { NAME } from "./found.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head } from "./queue.js";
import { jobLink } from "./row.js";

export function signals(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "signals", env);
  let found = null;
  const send = (label, what) => h("button", { type: "button", onclick: () => act.dialog(what(() => followed.now())) }, label);

  // The name, how many wait for it, and the button for all stand with the first of its jobs.
  function tell(cell, { signal, isFirst }) {
    if (cell.hasChildNodes() !== isFirst) cell.replaceChildren(...(isFirst ? [h("b", {}, h("a", { href: `jobs?queue=${key}&state=delayed&awaits=${signal.id}` }, signal.name)), h("span", { class: "count" })] : []));
    if (isFirst) put(cell.lastChild, ` (${text.jobs(signal.count)})`);
  }

  function offer(cell, { id, name, signal, isFirst }) {
    const [one, all] = [live.mayAct(key), isFirst && signal.jobs.length > 1 ? `Send to ${signal.jobs.length === signal.count ? "all" : "the first"} ${signal.jobs.length}` : ""];
    const wanted = one ? `${all} ${signal.jobs.map((job) => job.id)}` : "";
    if (cell.dataset.acts === wanted) return;
    cell.dataset.acts = wanted;
    cell.replaceChildren(...(one ? [send("Send", (done) => act.signal(key, { id, name, signal }, done))] : []), ...(one && all ? [send(all, (done) => act.signalAll(key, signal, done))] : []));
  }

  const shown = page("Jobs that wait for a signal", [
    { title: "Signal", up: true, by: ({ signal }) => signal.name, fill: tell },
    { ...NAME, title: "Job", make: (job) => jobLink(key, job) },
    { title: "Goes on without it", up: true, by: ({ due }) => due, show: ({ due }) => (due >= text.LAST ? "never" : text.until(due, live.now())) },
    { title: "Send", class: "send", fill: offer },
  ], env, { key: ({ id, signal }) => `${id} ${signal.id}`, group: ({ signal }) => signal.id, none: "No job waits for a signal. DQ.NACK with AWAIT lets one wait." });
  main.append(...shown.parts);
  const followed = live.follow((signal) => live.look("signals", `queue=${key}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), (answer, error) => {
    put(shown.wrong, error ?? "");
    found = answer ?? found;
    update();
  }, { every: 10_000 });

  function update() {
    updateHead();
    if (!found) return;
    shown.show(found.signals.flatMap((signal) => signal.jobs.map((job) => ({ ...job, signal }))));
    const more = found.kinds - found.signals.length;
    put(shown.note, [more > 0 && `And ${text.full(more)} other signals.`, found.more && `Of ${text.jobs(found.seen)} checked.`].filter(Boolean).join(" "));
    shown.links([about.cursor && ["First jobs", { cursor: "" }], found.more && ["Search further", { cursor: found.more }]]);
  }

  return { update, close: followed.stop };
}
