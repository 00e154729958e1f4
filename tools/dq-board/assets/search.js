// A search over all queues, in steps.
import { h } from "./dom.js";
import * as text from "./text.js";
import * as filter from "./filter.js";
import * as found from "./found.js";
import { ofAll } from "./queue.js";
import { STATES } from "./row.js";

export function search(main, about, env) {
  const state = STATES.includes(about.state) ? about.state : "all";
  const update = ofAll(main, "Search all queues", env);
  const which = h("select", { "aria-label": "State" }, ...["all", ...STATES].map((name) => h("option", { value: name }, name === "all" ? "in all states" : name)));
  which.value = state;
  const form = filter.form(about, state, (words) => env.go(`search?state=${which.value}${words}`), which);
  const wrong = h("p", { class: "wrong", role: "alert" });
  const empty = h("div", { class: "empty", hidden: Boolean(about.state) }, "What is looked for? A part of an id, of a payload, of a reason, a label, a group or a signal.");
  const further = h("div", { class: "further" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs found", "aria-label": "Jobs found", hidden: true }, h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "fq" }, "Queue"), ...found.titles())), body);
  main.append(form, wrong, found.sorted(table), empty, further);
  let at = [0, 0];
  const searched = about.state && found.search({
    question: filter.question(about, state),
    done({ done, of }) {
      at = [done, of];
      return of ? done / of : 1;
    },
    told: () => `${text.full(at[0])} of ${text.full(at[1])} queues searched`,
    end: "all queues searched",
  }, { further, wrong, empty, rows: (jobs) => { body.append(...jobs.map((job) => found.line(job.queue.key, null, job))); table.hidden = false; } });
  if (about.state) empty.textContent = "No job matches.";
  return { update, close: () => searched?.stop?.() };
}
