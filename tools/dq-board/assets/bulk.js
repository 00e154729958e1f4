// Actions on all jobs that a filter selects: counted first, then carried out in steps, with a bar and a way to stop.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as filter from "./filter.js";
import { busy, closed, foresight, isDanger, OF_STATE, ofMany, sentAs, tellFate } from "./act.js";
import { rowOf } from "./row.js";

// The buttons for all jobs of the page's filter.
export function bar(key, about, state, done) {
  const buttons = OF_STATE[about.all === "1" ? "all" : state].map((what) => h("button", { type: "button", class: isDanger(what) ? "danger-link" : "", onclick: () => open(key, about, state, what, done) }, ofMany(what, true).label));
  const row = h("div", { class: "bulk", role: "group", "aria-label": "All that match", hidden: true }, h("span", { class: "note" }, "All that match:"), ...buttons);
  return { row, offer: () => { row.hidden = !live.mayAct(key) || live.isGone(key); } };
}

// Every dead job of a queue, without a filter.
export const retryDead = (key) => open(key, {}, "dead", "kick", () => {});

// The jobs of one group, from a page that lists others.
export const ofGroup = (key, group, state, what, done) => open(key, { group, all: state === "all" ? "1" : "" }, state, what, done);

function open(key, about, state, what, done) {
  const { happens, act } = ofMany(what);
  const row = rowOf(key);
  const order = { queue: key, filter: filter.question(about, state) };
  const total = row.jobs.reduce((sum, count) => sum + count, 0);
  const halt = () => live.post(`api/tasks/${running}/stop`, {});
  const { told, meter, wrong, typed, to, fields, sent, go, back, stop, form, box } = question(what, row.name, filter.isFiltered(about) ? "that match" : `${state} jobs`, filter.told(about, state), { check, halt });
  let count = null;
  let running = null;
  let isClosed = false;

  async function show() {
    sent.show(await live.commands({ ...order, act, to: encodeURIComponent(to.value) }).catch(() => null));
  }

  function check() {
    go.disabled = !count || (what === "move" && !to.value) || (isDanger(what) && typed.value !== row.name);
    return show();
  }

  function follow(what, show) {
    return live.task({ ...order, ...what }, (told, number) => {
      running = number;
      if (isClosed) return false;
      return show(told);
    });
  }

  async function counting() {
    const fate = foresight(key, "them", what, about.all === "1" ? "all" : state);
    const task = await follow({ act: "count", ...fate?.what }, (it) => {
      meter.value = it.state === "done" ? 1 : Math.min(it.looked / Math.max(total, 1), 0.98);
      put(told, `Counting: ${text.full(it.found)} so far.`);
    });
    if (task.state === "failed") throw new Error(task.why);
    count = task.found;
    put(told, count ? `${text.jobs(count)} ${happens(count)}. ${tellFate(task.fate, "them")}` : "No job matches.");
    meter.hidden = true;
    await check();
  }

  async function acting() {
    [...fields, go, back].forEach((it) => { it.hidden = true; });
    [meter, stop].forEach((it) => { it.hidden = false; });
    const task = await follow({ act, typed: typed.value, to: encodeURIComponent(to.value) }, (it) => {
      meter.value = it.state === "done" ? 1 : Math.min(it.found / count, 0.98);
      put(told, `${text.full(it.changed)} of ${text.full(count)} done.`);
    });
    stop.hidden = true;
    back.hidden = false;
    put(back, "Close");
    put(told, `${{ done: "Done", stopped: "Stopped", failed: "Failed" }[task.state] ?? ""}: ${text.jobs(task.changed)} changed.`);
    put(wrong, task.why ?? "");
    back.focus();
    done();
  }

  const tell = (error) => { put(wrong, error.message); stop.hidden = true; back.hidden = false; };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    go.disabled = true;
    acting().catch(tell);
  });
  closed(box, () => { isClosed = true; });
  document.body.append(box);
  box.showModal();
  back.focus();
  busy(box, [counting().catch(tell)]);
}

// The elements of the dialog, which checks again when something is typed.
function question(what, name, those, which, on) {
  const { label, yes } = ofMany(what, true);
  const told = h("p", { role: "status" });
  const meter = h("progress", { max: "1", "aria-label": "Progress" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const input = (id) => h("input", { type: "text", id, autocomplete: "off", spellcheck: "false", oninput: () => on.check() });
  const [typed, to] = [input("bulk-typed"), input("bulk-to")];
  const field = (label, it) => h("div", { class: "field" }, h("label", { for: it.id }, label), h("div", { class: "inputs" }, it));
  const danger = isDanger(what);
  const sent = sentAs();
  const fields = [what === "move" ? field("To the queue", to) : null, danger ? field(`Type the queue's name, ${name}`, typed) : null].filter(Boolean);
  const go = h("button", { type: "submit", class: danger ? "danger" : "main", disabled: true }, yes);
  const back = h("button", { type: "button", onclick: () => box.close() }, "Not now");
  const stop = h("button", { type: "button", hidden: true, onclick: () => on.halt() }, "Stop");
  const form = h("form", {}, h("h2", { id: "bulk-title" }, `${label} ${those}?`), h("p", {}, `Jobs of ${name}: ${which}.`), told, meter, ...fields, ...sent.parts, wrong, h("div", { class: "buttons" }, stop, back, go));
  const box = h("dialog", { "aria-labelledby": "bulk-title" }, form);
  return { told, meter, wrong, typed, to, fields, sent, go, back, stop, form, box };
}
