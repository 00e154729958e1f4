// A search over all queues, in steps.
import { h, put } from "./dom.js";
import { page } from "./columns.js";
import * as text from "./text.js";
import * as filter from "./filter.js";
import * as found from "./found.js";
import { ofAll } from "./queue.js";
import { STATES } from "./row.js";

export function search(main, about, env) {
  const state = STATES.includes(about.state) ? about.state : "all";
  ofAll(main, "Search all queues", env);
  const which = h("select", { "aria-label": "State" }, ...["all", ...STATES].map((name) => h("option", { value: name }, name === "all" ? "in all states" : name)));
  which.value = state;
  const form = filter.form(about, state, (words) => env.go(`search?state=${which.value}${words}`), which);
  const jobs = page("Jobs found", found.columns(), env, { key: found.named, letter: "f", kind: "found", none: "No job matches." });
  main.append(form, ...jobs.parts);
  let at = [0, 0];
  const isAsked = about.state || filter.isFiltered(about);
  const searched = isAsked && found.search({
    question: filter.question(about, state),
    done({ done, of }) {
      at = [done, of];
      return of ? done / of : 1;
    },
    told: () => `${text.full(at[0])} of ${text.full(at[1])} queues searched`,
    end: "all queues searched",
  }, jobs);
  if (!isAsked) {
    put(jobs.empty, "What is looked for? A part of an id, of a payload, of a reason, a label, a group or a signal.");
    jobs.empty.hidden = false;
  }
  return { update: jobs.again, close: () => searched?.stop?.() };
}
