// Boxes to choose jobs with, and actions on the chosen ones.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";

export function choosing(key, state, done) {
  const chosen = new Map();
  let table = null;
  let last = null;
  const count = h("p", { class: "note", role: "status" });
  const buttons = act.OF_STATE[state].filter((what) => what !== "move").map((what) => act.button(act.ofMany(what).label, () => act.several(key, what, [...chosen], () => { clear(); done(); }), act.isDanger(what)));
  const bar = h("div", { class: "chosen", role: "group", "aria-label": "Selected jobs", hidden: true }, count, ...buttons);
  const every = h("input", { type: "checkbox", "aria-label": "Select all on this page", onchange: () => all(every.checked ? boxes().map((box) => [box.value, box.dataset.state]) : []) });
  const boxes = () => [...table.querySelectorAll("tbody .pick input")];

  function all(ids) {
    chosen.clear();
    for (const [id, state] of ids) chosen.set(id, state);
    show();
  }

  // With Shift those between this one and the last one are chosen, too, or given up.
  function pick({ target, shiftKey }) {
    const there = boxes();
    const [from, to] = [shiftKey ? there.indexOf(last) : -1, there.indexOf(target)];
    for (const box of from < 0 ? [target] : there.slice(Math.min(from, to), Math.max(from, to) + 1)) {
      if (target.checked) chosen.set(box.value, box.dataset.state);
      else chosen.delete(box.value);
    }
    last = target;
    show();
  }

  function clear() {
    all([]);
  }

  function show() {
    const shown = boxes();
    for (const box of shown) box.checked = chosen.has(box.value);
    every.checked = shown.length > 0 && shown.every((box) => box.checked);
    bar.hidden = chosen.size === 0;
    put(count, `${text.jobs(chosen.size)} selected`);
  }

  return {
    bar,
    of(it) { table = it; },
    head: h("th", { role: "columnheader", scope: "col", class: "pick" }, every),
    box: (job) => h("td", { role: "cell", class: "pick" }, h("input", { type: "checkbox", value: job.id, "data-state": job.state ?? state, "aria-label": `Select ${job.name}`, onclick: pick })),
    // A job that no longer exists cannot be chosen.
    keep(jobs) {
      const there = new Set(jobs.map((job) => job.id));
      for (const id of chosen.keys()) if (!there.has(id)) chosen.delete(id);
      show();
    },
    offer: () => table.classList.toggle("choosing", live.mayAct(key)),
  };
}
