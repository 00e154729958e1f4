// Recurring jobs, of one queue or of all, with their last and next runs.
import { h, list, put, putName, replace } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import { page } from "./columns.js";
import { NAME } from "./found.js";
import * as rules from "./rules.js";
import { head, ofAll } from "./queue.js";
import { came, DELIVERED, isAllSkipped, jobLink, MISSED, rowOf } from "./row.js";
import { oldest } from "./table.js";
import { zone } from "./zone.js";

const NONE = "No recurring jobs. DQ.ADD with EVERY or CRON adds one.";

const A_MINUTE = 60_000;
// What was asked may be old sooner than it is asked again.
const SOON_MS = 10_000;

const ago = (instant) => text.until(instant, live.now());

// The last run that the queue keeps. After a death there may have been successes that are not.
function ended({ last, isLast }) {
  const why = last.reason ? `: ${text.telling(last.reason)}` : "";
  if (last.state === "dead") return !isLast ? `last death ${ago(last.at)}${why}` : `dead${why}, ${ago(last.at)}`;
  return `${last.state}${last.ran === null ? "" : `, ran for ${text.millis(last.ran)}`}, ${ago(last.at)}`;
}

// What else is known of its runs.
function besides({ last, isLast, queue, rule, keeps, unsearched, failed, reason }) {
  const missed = rule.grace === null ? 0 : queue.totals[MISSED];
  const skipped = missed && `${text.full(missed)} ${missed === 1 ? "run" : "runs"} of any rule of this queue skipped since it came to this server (GRACE)`;
  if (!last && isAllSkipped(rule, queue)) return `none was delivered; ${skipped}`;
  return [
    !last && unsearched && "not among the first 2,000 kept jobs",
    keeps === false ? `${last ? "" : "not known: "}successes are not kept (DONELEN, KEEP)` : !last && !unsearched ? "none is kept" : last?.state === "dead" && !isLast && "later successes may no longer be kept",
    failed !== null && !(failed < last?.at) && `last failed attempt ${ago(failed)}${reason ? `: ${text.telling(reason)}` : ""}`,
    missed && (queue.totals[DELIVERED] === 0 ? `${skipped}, none delivered` : skipped),
  ].filter(Boolean).join("; ");
}

function outcome(cell, job) {
  const { last, queue, rule, failed } = job;
  if (cell.dataset.last !== (cell.dataset.last = last?.id ?? "")) cell.replaceChildren(...(last ? [jobLink(queue.key, { id: last.id, name: "" })] : []), h("span", {}));
  if (last) put(cell.firstChild, ended(job), { dead: "bad", done: "good" }[last.state] ?? "");
  const more = rule.runs || failed !== null ? besides(job) : "–";
  put(cell.lastChild, last && more ? `; ${more}` : more, "quiet");
}

// Of a run that waits for a worker since when, else when the next one is; of those that follow only the instants.
const upcoming = ({ state, due, rule }) => (state === "ready" ? [due, ...rule.next] : rule.next);

function runs(cell, job) {
  const waits = job.state === "ready";
  list(cell, upcoming(job).map((instant, index) => ({ instant, index })), (it) => it.instant, () => h("span", { class: "run" }), (run, { instant, index }) => {
    const tone = waits && !index ? oldest(live.now() - instant)[1] : "";
    put(run, index ? text.at(instant) : `${waits ? "due " : ""}${text.until(instant, live.now())}: ${text.at(instant)}`, tone);
  });
}

export function recurring(main, about, env) {
  const key = about.queue;
  const updateHead = key ? head(main, key, "recurring", env) : ofAll(main, "Recurring jobs", env);
  const again = () => followed.now();
  const add = act.button("Add a recurring job", () => rules.add(rowOf(key), again));
  main.append(h("div", { class: "tools" }, zone(() => env.go(location.href, true), "A rule's own time zone is part of the rule. "), key ? add : ""));

  function state(cell, job) {
    const runsNow = job.state === "delayed" && live.mayAct(job.queue.key);
    if (!runsNow && cell.textContent !== job.state) replace(cell, job.state);
    else if (runsNow && !cell.querySelector("button")) cell.replaceChildren(act.button("Run now", () => act.runNow(job.queue.key, jobs.get(named(job)), again)));
  }

  const named = (job) => `${job.queue.key} ${job.id}`;
  // One that was just run stays where it is: the focus is in its line.
  const first = (job) => upcoming(job)[job.state === "ready" && live.now() - job.due < A_MINUTE ? 1 : 0];
  const next = { title: "Next runs", up: true, by: first, fill: runs };
  const shown = page("Recurring jobs", [
    ...(key ? [] : [{ title: "Queue", class: "fq", up: true, by: ({ queue }) => queue.name, make: ({ queue }) => putName(h("a", { href: `recurring?queue=${queue.key}` }), queue.name) }]),
    { ...NAME, make: (job) => jobLink(job.queue.key, job) },
    { title: "Rule", up: true, by: ({ rule }) => rule.text, show: ({ rule }) => rule.text },
    next,
    { title: "Last run", by: ({ last }) => last?.at, fill: outcome },
    { title: "Runs", by: ({ rule }) => rule.runs, show: ({ rule, queue }) => came(rule, queue) },
    { title: "State", up: true, by: (job) => job.state, fill: state },
  ], env, { key: named, letter: "r", usual: next });
  main.append(...shown.parts);
  const jobs = new Map();
  let asked = 0;
  const question = ["queue", "cursor", "from"].filter((word) => about[word]).map((word) => `${word}=${about[word]}`).join("&");
  const followed = shown.asked("recurring", question, (found) => {
    jobs.clear();
    for (const job of found.jobs) jobs.set(named(job), job);
    shown.show(found.jobs, found.more ? "No recurring jobs found so far." : NONE);
    shown.links([about.cursor && ["First jobs", { cursor: "", from: "" }], found.more && ["Search further", { from: "", cursor: found.more }]]);
  }, { every: 30_000 });

  function update() {
    updateHead();
    add.hidden = !live.mayAct(key);
    followed.again();
    const now = live.now();
    if (now - asked < SOON_MS || ![...jobs.values()].some((job) => job.state === "delayed" && job.rule.next[0] < now)) return;
    asked = now;
    followed.now();
  }

  return { update, close: followed.stop };
}
