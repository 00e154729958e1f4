// Jobs that wait for a signal, by its name, and sending it.
import { h, list, put } from "./dom.js";
import * as act from "./act.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, pages } from "./queue.js";

const COLUMNS = ["Signal", "Job", "Goes on without it", "Send"];

export function signals(main, about, env) {
  const key = about.queue;
  const updateHead = head(main, key, "signals", env);
  const page = pages(main, "Jobs that wait for a signal", COLUMNS, "No job waits for a signal. DQ.NACK with AWAIT lets one wait.");
  let found = null;
  const followed = live.follow((signal) => live.look("signals", `queue=${key}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), (answer, error) => {
    put(page.wrong, error ?? "");
    if (!answer) return;
    found = answer;
    update();
  }, { every: 10_000 });
  const send = (label, what) => h("button", { type: "button", onclick: () => act.dialog(what(() => followed.now())) }, label);

  // A line for each job; the name, and the button for all, stand with the first one.
  function lines() {
    return found.signals.flatMap((signal) => signal.jobs.map((job, index) => ({ ...job, signal, isFirst: index === 0 })));
  }

  function line({ id, name, signal, isFirst }) {
    const told = isFirst ? h("b", {}, h("a", { href: `jobs?queue=${key}&state=delayed&awaits=${signal.id}` }, signal.name)) : "";
    const all = isFirst && signal.jobs.length > 1 && send("", (done) => act.signalAll(key, signal, done));
    return h("tr", {}, h("td", {}, told, " ", h("span", { class: "count" })), h("td", {}, h("a", { href: `job?queue=${key}&id=${id}` }, name)), h("td", {}),
      h("td", { class: "send" }, send("Send", (done) => act.signal(key, { id, name, signal }, done)), all || ""));
  }

  function fill(element, { due, signal, isFirst }) {
    const [, , until, buttons] = element.children;
    put(element.querySelector(".count"), isFirst ? `(${text.jobs(signal.count)})` : "");
    put(until, due >= text.LAST ? "never" : text.until(due, live.now()));
    if (buttons.children[1]) put(buttons.children[1], `Send to ${signal.jobs.length === signal.count ? "all" : "the first"} ${signal.jobs.length}`);
    buttons.hidden = !live.mayAct(key);
  }

  function update() {
    updateHead();
    if (!found) return;
    // With another number of jobs, another button stands there.
    list(page.body, lines(), (it) => `${it.id} ${it.signal.id} ${it.isFirst && it.signal.jobs.map((job) => job.id).join(" ")}`, line, fill);
    page.filled(found.signals.length > 0);
    const more = found.kinds - found.signals.length;
    put(page.note, [more > 0 && `And ${text.full(more)} other signals.`, found.more && `Of ${text.jobs(found.seen)} checked.`].filter(Boolean).join(" "));
    page.links([about.cursor && ["First jobs", `signals?queue=${key}`], found.more && ["Search further", `signals?queue=${key}&cursor=${found.more}`]]);
  }

  return { update, close: followed.stop };
}
