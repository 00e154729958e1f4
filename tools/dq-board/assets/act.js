// Actions: each dialog says what will happen, and asks for confirmation.
import { copyButton } from "./copy.js";
import { h, put } from "./dom.js";
import * as live from "./live.js";
import { full, jobs as counted, millis } from "./text.js";

const said = document.getElementById("said");
let timer;

function say(text, tone) {
  clearTimeout(timer);
  put(said, text, tone);
  timer = setTimeout(() => put(said, ""), tone === "bad" ? 20_000 : 6000);
}

// What is sent, as lines for redis-cli, and the script that does it, on request.
export function sentAs() {
  const command = h("pre", { class: "command", tabindex: "0", "aria-label": "In redis-cli" });
  const script = h("pre", { tabindex: "0", "aria-label": "Script" });
  const unfolds = h("details", { class: "script", hidden: true }, h("summary", {}, "The script that is sent: it reads each job at that moment"), script);
  const show = (told) => {
    put(command, told?.commands ?? "");
    put(script, told?.script ?? "");
    unfolds.hidden = !told?.script;
  };
  return { command, parts: [command, unfolds], show };
}

// `what` is sent; `fields` are inputs whose values are sent with it.
// `made`: inputs that exist already, and say when they have changed.
// `fate`: what looks up what comes of it, which is told before it can be done.
// `trim`: leaves out of what is sent what stays as it is.
export function dialog({ title, sentence, fields = [], made = [], yes, danger, what, fate, done, trim = (it) => it }) {
  const inputs = [...fields.map((field) => make(field)), ...made];
  const wrong = h("p", { class: "wrong", role: "alert" });
  const told = h("p", { role: "status", hidden: !fate }, "Looking at what comes of it …");
  let looks = Boolean(fate);
  const go = h("button", { type: "submit", class: danger ? "danger" : "main" }, yes);
  const sent = sentAs();
  const copy = copyButton("Copy for redis-cli", sent.command, { hidden: true });
  const back = h("button", { type: "button", onclick: () => box.close() }, "Not now");
  const form = h("form", {}, h("h2", { id: "dialog-title" }, title), h("p", {}, sentence), told, ...inputs.map((it) => it.row), ...sent.parts, wrong, h("div", { class: "buttons" }, copy, back, go));
  const box = h("dialog", { "aria-labelledby": "dialog-title" }, form);
  const check = () => { go.disabled = looks || inputs.some((it) => !it.fits()); };
  const asked = () => trim(Object.assign({ ...what }, ...inputs.map((it) => it.value())));
  let turn = 0;
  // The answer for an earlier text may arrive later.
  const show = async () => {
    const own = (turn += 1);
    const told = await live.commands(asked()).catch(() => null);
    if (own !== turn) return;
    sent.show(told);
    copy.hidden = !told?.commands;
  };
  const refresh = () => { check(); return show(); };
  form.addEventListener("input", () => { refresh(); for (const it of made) it.show(refresh); });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    go.disabled = true;
    put(wrong, "");
    try {
      const answer = await live.act(asked());
      box.close();
      say(answer.charAt(0).toUpperCase() + answer.slice(1) + ".", "good");
      done?.();
    } catch (error) {
      put(wrong, error.message);
      check();
    }
  });
  const look = async () => {
    const found = await live.task(fate.what, () => box.open).catch((error) => ({ why: error.message }));
    put(told, tellFate(found.fate, fate.them) || `Blocked jobs that wait for ${fate.them} may die. ${found.why ?? ""}`);
    looks = false;
    check();
  };
  closed(box);
  document.body.append(box);
  box.showModal();
  busy(box, [fate && look(), refresh(), ...made.map((it) => it.show(refresh))]);
  (inputs[0]?.input ?? back).focus();
}

// Until then there is more to come: buttons, commands, sentences.
export const busy = async (box, parts) => {
  box.setAttribute("aria-busy", "true");
  await Promise.all(parts);
  box.removeAttribute("aria-busy");
};

// What had the focus may be gone by now.
export const closed = (box, then) => box.addEventListener("close", () => {
  box.remove();
  then?.();
  if (document.activeElement === document.body) document.getElementById("main").focus({ preventScroll: true });
});

const UNITS = [["seconds", 1000], ["minutes", 60_000], ["hours", 3_600_000], ["days", 86_400_000]];

function make(field) {
  const id = `field-${field.name}`;
  const long = field.kind === "text";
  const input = h(long ? "textarea" : "input", { id, type: long ? undefined : field.kind === "time" ? "number" : "text", min: "0", rows: long ? 5 : undefined, autocomplete: "off", spellcheck: "false" });
  input.value = field.value ?? "";
  const unit = field.kind === "time" ? h("select", { "aria-label": "Unit" }, ...UNITS.map(([name, ms]) => h("option", { value: ms }, name))) : null;
  const row = h("div", { class: "field" }, h("label", { for: id }, field.label), h("div", { class: "inputs" }, input, unit));
  const ms = () => (input.value === "" ? null : Math.round(Number(input.value) * Number(unit.value)));
  return {
    row,
    input,
    fits: () => (field.must === undefined || input.value === field.must) && (!field.needed || input.value !== "") && (field.kind !== "time" || input.value === "" || Number(input.value) >= 0),
    value: () => ({ [field.name]: field.kind === "time" ? ms() : field.encode ? encodeURIComponent(input.value) : input.value }),
  };
}

export function button(text, about, danger) {
  return h("button", { type: "button", class: danger ? "danger-link" : "", onclick: () => dialog(about()) }, text);
}

export const pause = (row, done) => ({
  title: `Pause ${row.name}?`,
  sentence: "Nothing is delivered from this queue while it is paused. Jobs can still be added and acknowledged, become due, and their leases expire.",
  fields: [{ name: "ms", label: "For how long (empty: until it is resumed)", kind: "time" }],
  yes: "Pause",
  what: { act: "pause", queue: row.key },
  done,
});

export const resume = (row, done) => ({
  title: `Resume ${row.name}?`,
  sentence: `${counted(row.jobs?.[1] ?? 0)} can be delivered at once.`,
  yes: "Resume",
  what: { act: "resume", queue: row.key },
  done,
});

// What each setting of a queue changes.
const OF_QUEUE = [
  ["maxreserved", "MAXRESERVED: reserved jobs at most (0: no limit)"],
  ["groupmax", "GROUPMAX: reserved jobs at most of each group (0: no limit)"],
  ["attempts", "ATTEMPTS: deliveries at most of a job added from now on, which then is dead (0: no limit)"],
  ["backoff", "BACKOFF: milliseconds to wait after each failure of a job added from now on; the last repeats (empty: the server's)"],
  ["donelen", "DONELEN: done jobs to keep at most; the oldest go first (0: none, unless another setting keeps them)"],
  ["history", "HISTORY: failed attempts to remember of each job (0 to 100)"],
  ["rate", "RATE: deliveries at most (0: no limit)"],
];

export const configure = (row, set, done) => {
  const now = { ...set, backoff: set.backoff.join(", "), rate: set.rate[0], ms: set.rate[1] || "" };
  const same = (it, name) => String(it[name] ?? "") === String(now[name]);
  return {
    title: `Change settings of ${row.name}?`,
    sentence: "They hold from now on. What you leave as it is stays.",
    fields: [...OF_QUEUE.map(([name, label]) => ({ name, label, value: now[name] })), { name: "ms", label: "… in", kind: "time", value: now.ms && now.ms / 1000 }],
    trim(it) {
      const names = OF_QUEUE.map(([name]) => name).filter((name) => name !== "rate" && same(it, name));
      if (same(it, "rate") && same(it, "ms")) names.push("rate", "ms");
      return Object.fromEntries(Object.entries(it).filter(([name]) => !names.includes(name)));
    },
    yes: "Change them",
    what: { act: "configure", queue: row.key },
    done,
  };
};

const OF_GROUP = [["weight", "Weight: deliveries in a turn, 1 to 1000", (it) => it.weight], ["max", "Reserved at most (0: no limit)", (it) => it.max], ["maxlen", "Jobs at most (0: no limit)", (it) => it.maxlen], ["rate", "Deliveries at most (0: no limit)", (it) => it.rate?.[0]]];

// `group.id`: its name as it is sent; empty: the name is typed.
export const setGroup = (row, group, done) => ({
  title: group.id ? `Set the group ${group.name}?` : "Set a group?",
  sentence: `What is given here holds for this group of ${row.name} instead of the queue's settings, whether it has jobs or not. What is left empty stays as it is.`,
  fields: [
    ...(group.id ? [] : [{ name: "group", label: "Group", needed: true, encode: true }]),
    ...OF_GROUP.map(([name, label, own]) => ({ name, label, value: own(group) ?? "" })),
    { name: "ms", label: "… in", kind: "time", value: group.rate ? group.rate[1] / 1000 : "" },
  ],
  yes: "Set it",
  what: { act: "group-set", queue: row.key, group: group.id },
  done,
});

export const clearGroup = (row, group, done) => ({
  title: `Clear what ${group.name} has of its own?`,
  sentence: "Its weight, its limits and its pause go; the queue's settings hold for it.",
  yes: "Clear it",
  what: { act: "group-clear", queue: row.key, group: group.id },
  done,
});

export const pauseGroup = (row, group, done) => ({
  title: `Pause the group ${group.name}?`,
  sentence: `Nothing of this group of ${row.name} is delivered while it is paused. The other groups go on.`,
  fields: [{ name: "ms", label: "For how long (empty: until it is resumed)", kind: "time" }],
  yes: "Pause",
  what: { act: "group-pause", queue: row.key, group: group.id },
  done,
});

export const resumeGroup = (row, group, done) => ({
  title: `Resume the group ${group.name}?`,
  sentence: "Its jobs can be delivered at once, as far as its limits let them.",
  yes: "Resume",
  what: { act: "group-resume", queue: row.key, group: group.id },
  done,
});

const tellRecurring = (row, state) => (row.recurring && ["all", "delayed", "ready", "reserved"].includes(state) ? " Recurring jobs among them go with their rules, and do not come again." : "");

const hasBlocked = (queue) => (live.rows.get(queue)?.jobs?.[4] ?? 0) > 0;

// ": a, b and 3 more": the first of so many, as far as they are known.
function firstOf([count, first]) {
  const more = first.length && count > first.length ? ` and ${full(count - first.length)} more` : "";
  return `${first.length ? `: ${first.join(", ")}` : ""}${more}`;
}

// What comes of deleting or moving `them`; empty: that is not known.
export function tellFate(fate, them) {
  if (!fate) return "";
  const { dying, freed, successors, staying } = fate;
  const are = (count, one, many) => `${full(count)} ${count === 1 ? one : many}`;
  if (staying) {
    const [count, first] = staying;
    if (!count) return "No other job dies of it or is freed.";
    return them === "it" ? `It stays here: ${first[0][1]}.` : `${are(count, "of them stays", "of them stay")} here${firstOf([count, first.map(([name, why]) => `${name} (${why})`)])}.`;
  }
  return [
    dying[0] ? `${are(dying[0], "blocked job dies", "blocked jobs die")} with ${them}${firstOf(dying)}.` : `No blocked job dies with ${them}.`,
    freed[0] && `${are(freed[0], "blocked job is", "blocked jobs are")} freed, and may run${firstOf(freed)}.`,
    successors && `${them === "it" ? "The run that was to follow (NEXT) goes" : are(successors, "run that was to follow (NEXT) goes", "runs that were to follow (NEXT) go")} with ${them}.`,
  ].filter(Boolean).join(" ");
}

// What a dialog looks up before jobs of a state are removed or moved. Nothing comes of removing done ones, or dead ones
// where none are blocked.
export function foresight(queue, them, what, state, which) {
  const isNone = !["cancel", "delete", "move"].includes(what) || state === "done" || (state === "dead" && what !== "move" && !hasBlocked(queue));
  return isNone ? null : { them, what: { act: "count", queue, foresees: what, ...which } };
}

export const purge = (row, state, count, done) => ({
  title: state === "all" ? "Purge the queue?" : `Purge all ${state} jobs?`,
  sentence: `${counted(count)} of ${row.name} will be removed for good. ${state === "reserved" || state === "all" ? "Workers that have one can no longer acknowledge it. " : ""}This cannot be undone.${tellRecurring(row, state)}`,
  fate: ["all", "blocked"].includes(state) ? null : foresight(row.key, "them", "delete", state, { filter: `state=${state}` }),
  fields: [{ name: "typed", label: `Type the queue's name, ${row.name}`, must: row.name }],
  yes: "Purge",
  danger: true,
  what: { act: "purge", queue: row.key, state },
  done,
});

export const add = (row, done) => ({
  title: `Add a test job to ${row.name}?`,
  sentence: "Workers of this queue will get it like any other job.",
  fields: [
    { name: "id", label: "Id", value: `test-${Date.now()}`, needed: true, encode: true },
    { name: "payload", label: "Payload", kind: "text", value: "{}" },
    { name: "ms", label: "Due after", kind: "time", value: "0" },
  ],
  yes: "Add it",
  what: { act: "add", queue: row.key },
  done,
});

const KICKS = {
  dead: ["Retry this job now?", (job) => `is dead after ${job.attempts} ${job.attempts === 1 ? "delivery" : "deliveries"}. It becomes ready now, with no attempts used.`, "Retry it"],
  done: ["Run this job again?", () => "becomes ready now, with no attempts used. Its result is dropped.", "Run it again"],
  blocked: ["Run this job now?", () => "becomes ready now, whatever it waits for.", "Run it now"],
};

export const kick = (queue, job, done) => ({
  title: KICKS[job.state][0],
  sentence: `${job.name} ${KICKS[job.state][1](job)}`,
  yes: KICKS[job.state][2],
  what: { act: "kick", queue, id: job.id, state: job.state },
  done,
});

export const runNow = (queue, job, done) => ({
  title: "Run this job now?",
  sentence: `${job.name} becomes due at once${job.awaits === null ? ` instead of ${millis(Math.max(job.due - live.now(), 0))} from now` : ", without its signal"}.${job.rule ? " Its rule does not change." : ""}`,
  yes: "Run it now",
  what: { act: "now", queue, id: job.id, state: job.state },
  done,
});

export const reschedule = (queue, job, done) => ({
  title: "Reschedule this job?",
  sentence: `${job.name} will be due after this time instead. Its attempts and its reason do not change.`,
  fields: [{ name: "ms", label: "Due after", kind: "time", value: "60", needed: true }],
  yes: "Reschedule",
  what: { act: "reschedule", queue, id: job.id, state: job.state },
  done,
});

// Without `signal` its name is typed.
const signalled = (queue, signal, which, ids, done) => ({
  title: signal ? `Send the signal ${signal.name}?` : "Send a signal?",
  sentence: `${which} It is stored as a step, and whoever waits for it becomes due at once. A job that has this step already keeps it as it is.`,
  fields: [...(signal ? [] : [{ name: "signal", label: "Name of the signal", needed: true, encode: true }]), { name: "payload", label: "Value", kind: "text" }],
  yes: "Send it",
  what: { act: "signal", queue, signal: signal?.id, ...ids },
  done,
});

export const signal = (queue, job, done) => signalled(queue, job.signal, `${job.name} gets it, whether it waits for it yet or not.`, { id: job.id }, done);

export const signalAll = (queue, signal, done) => signalled(queue, signal, `The ${counted(signal.jobs.length)} shown that wait for it get it.`, { ids: signal.jobs.map((job) => job.id) }, done);

export const giveBack = (queue, job, done) => ({
  title: "Give this job back now?",
  sentence: `This delivery of ${job.name} ends without counting as an attempt, and another worker may get the job at once. The handler that works on it${job.client === null ? "" : ` (${job.client})`} goes on until it hears of it: what it has done stays done, but it can no longer acknowledge the job. If the job has been delivered again by then, nothing happens.`,
  yes: "Give it back",
  danger: true,
  what: { act: "give-back", queue, id: job.id, token: job.token },
  done,
});

export const move = (queue, job, done) => ({
  title: "Move this job to another queue?",
  sentence: `${job.name} goes there with its payload and options, and keeps its due time. Its attempts and its history begin anew, and a dead job becomes ready there. It stays here if its id is taken there.`,
  fields: [{ name: "to", label: "To the queue", needed: true, encode: true }],
  fate: foresight(queue, "it", "move", job.state, { ids: [job.id] }),
  yes: "Move it",
  what: { act: "move", queue, id: job.id, state: job.state },
  done,
});

export const cancel = (queue, job, done) => ({
  title: job.rule ? "Cancel this recurring job?" : "Cancel this job?",
  sentence: `${job.name} is removed and will not run${job.rule ? " again" : ""}. If a worker has it at that moment, nothing happens.`,
  fate: foresight(queue, "it", "cancel", job.state, { ids: [job.id] }),
  yes: "Cancel it",
  danger: true,
  what: { act: "cancel", queue, id: job.id, state: job.state },
  done,
});

export const remove = (queue, job, done) => ({
  title: "Delete this job?",
  sentence: `${job.name} is removed for good${job.state === "reserved" ? ", and the worker that has it can no longer acknowledge it" : ""}.`,
  fate: foresight(queue, "it", "delete", job.state, { ids: [job.id] }),
  yes: "Delete it",
  danger: true,
  what: { act: "delete", queue, id: job.id, state: job.state },
  done,
});

// What is done to many jobs: the button's label, what happens to them, the confirmation, and the action if its name differs.
const ACTS = {
  again: ["Run again", "become ready now, with no attempts used. Results are dropped", "Run them again", "kick"],
  free: ["Run now", "become ready now without waiting for others", "Run them now", "kick"],
  kick: ["Retry", "become ready now, with no attempts used", "Retry them"],
  now: ["Run now", "become due at once", "Run them now"],
  move: ["Move", "go to the other queue with their options and no attempts used, except those whose ids are taken there", "Move them"],
  cancel: ["Cancel", "are removed and will not run, except those that a worker has at that moment", "Cancel them"],
  delete: ["Delete", "are removed for good. Workers that have one can no longer acknowledge it", "Delete them"],
};

// For jobs of several states only what all states allow.
export const OF_STATE = { delayed: ["now", "move", "cancel"], ready: ["move", "cancel"], reserved: ["delete"], dead: ["kick", "move", "delete"], blocked: ["free", "cancel"], done: ["again", "delete"], all: ["cancel"] };

export const isDanger = (what) => ["cancel", "delete"].includes(what);

// `all`: to all that match.
export function ofMany(what, all = false) {
  const [label, happens, yes, act = what] = ACTS[what];
  const one = happens.replace(/^\w+/, (word) => ({ are: "is", become: "becomes", go: "goes" })[word]);
  return { label: all ? label.replace(/^\w+/, "$& all") : label, happens: (count) => (count === 1 ? one : happens), yes, act };
}

// `jobs`: each one's id, and the state in which it was seen.
export const several = (queue, what, jobs, done) => ({
  title: `${ofMany(what).label}: ${counted(jobs.length)}?`,
  sentence: `The ${counted(jobs.length)} selected ${ofMany(what).happens(jobs.length)}.`,
  fate: foresight(queue, "them", what, jobs[0][1], { ids: jobs.map(([id]) => id) }),
  yes: ofMany(what).yes,
  danger: isDanger(what),
  what: { act: ofMany(what).act, queue, ids: jobs.map(([id]) => id), states: jobs.map(([, state]) => state) },
  done,
});
