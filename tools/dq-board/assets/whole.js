// A whole flow: its jobs as layers that fold, and batches with what comes after them.
import { attribute, h, list, put } from "./dom.js";
import { TONES } from "./flow.js";
import * as live from "./live.js";
import { nameOf } from "./row.js";
import * as text from "./text.js";

const STATES = ["dead", "reserved", "ready", "delayed", "blocked", "done"];
const sum = (values) => values.reduce((all, value) => all + value, 0);
const counted = (counts) => ["done", ...Object.keys(counts).filter((state) => state !== "done")].filter((state) => counts[state]).map((state) => `${text.full(counts[state])} ${state}`).join(", ");
const LEFT = STATES.filter((state) => !["dead", "done"].includes(state));

// Of done jobs only those are known that others were told to wait for: a share of all is said only where all are known.
function far({ layers, known }) {
  const of = (...states) => sum(layers.flatMap(({ counts }) => states.map((state) => counts[state] ?? 0)));
  const [all, done, dead] = [sum(layers.map(({ jobs }) => jobs.length)), of("done"), of("dead")];
  const died = dead ? `, ${text.full(dead)} dead` : "";
  if (known) return { said: `${text.full(done)} of ${text.full(all)} done${died}`, share: all ? done / all : 0 };
  return { said: `${text.full(of(...LEFT))} left${died}, at least ${text.full(done)} done`, share: null };
}

// Of a batch of which done jobs may be gone. Without the right to DQ.LEN it is not known how many are left.
function left({ left, done }) {
  const kept = done ? `${text.full(done)} done ${done === 1 ? "job is" : "jobs are"} still kept` : "none of its done jobs is kept";
  return `${left === null ? "how many are left is unknown" : `${text.full(left)} left`} (${kept}: see DONELEN and DONETTL)`;
}

export function whole(main, about, env) {
  const key = about.queue;
  const here = `job?queue=${key}&id=${about.id ?? ""}`;
  env.trail.append(h("a", { href: "./" }, "Queues"), h("a", { href: `queue?queue=${key}` }, nameOf(key)), h("a", { href: here }, nameOf(`:${about.id ?? ""}`)));
  document.title = "Flow – dq";
  const told = h("p", { role: "status" });
  const bar = h("progress", { max: "1", value: "0", "aria-label": "Done" });
  const legend = h("ul", { class: "legend states", "aria-label": "Legend" }, ...STATES.map((state) => h("li", { "data-tone": TONES[state] ?? "" }, state)));
  const wrong = h("p", { class: "wrong", role: "alert" });
  const batches = h("ul", { class: "needy" });
  const layers = h("div", {});
  main.append(h("h1", {}, "Flow"), h("div", { class: "bulk" }, told, bar), legend, wrong, batches, layers);
  live.see([key]);
  let isShown = false;
  const followed = live.follow((signal) => live.look("whole", `queue=${key}&id=${about.id ?? ""}`, signal), (answer, error) => {
    put(wrong, error ?? "");
    if (answer) show(answer);
  }, { every: 30_000 });

  function show(answer) {
    const { said, share } = far(answer);
    put(told, `${said}${answer.batches.length ? ", without the jobs of groups" : ""}${answer.part ? ", as far as the board has looked" : ""}.`);
    bar.hidden = share === null;
    bar.value = share ?? 0;
    list(batches, answer.batches, (it) => `${it.id} ${it.then.id}`, batch, (line, it) => {
      const bar = line.querySelector("progress");
      bar.hidden = !it.known || it.left === null;
      const all = it.done + it.left + it.dead;
      attribute(bar, "value", it.done / Math.max(all, 1));
      put(line.querySelector("span"), `${bar.hidden ? left(it) : `${text.full(it.done)} of ${text.full(all)} done`}${it.dead ? `, ${text.full(it.dead)} dead` : ""}, then `);
    });
    list(layers, answer.layers.map((layer, index) => ({ ...layer, index })), (it) => it.index, layer, fill);
    const current = layers.querySelector("[aria-current]");
    if (!isShown && current) current.scrollIntoView({ block: "nearest" });
    isShown = true;
  }

  function batch({ name, id, then }) {
    return h("li", {}, h("a", { href: `jobs?queue=${key}&state=blocked&all=1&group=${id}` }, `Group ${name}`), " ", h("progress", { max: "1", "aria-label": `Done of ${name}` }), " ", h("span", {}), h("a", { href: `job?queue=${key}&id=${then.id}` }, then.name));
  }

  // A layer that is done is folded, unless the job from which one comes is in it.
  function layer({ jobs, counts }) {
    const open = (counts.done ?? 0) < jobs.length || jobs.some((job) => job.id === about.id);
    return h("details", { class: "card layer", open }, h("summary", {}), h("ul", { class: "ids states" }));
  }

  function fill(element, { index, jobs, counts }) {
    put(element.firstChild, `Layer ${index + 1}: ${counted(counts)}`, counts.dead ? "bad" : "");
    list(element.lastChild, jobs, (job) => job.id, (job) => h("li", {}, h("a", { href: `job?queue=${key}&id=${job.id}`, "aria-current": job.id === about.id ? "true" : undefined }, job.name), " ", h("span", {})),
      (line, job) => put(line.lastChild, job.cause ? `${job.state}: ${job.cause.name} is dead` : job.state, TONES[job.state] ?? ""));
  }

  return { update() {}, close: followed.stop };
}
