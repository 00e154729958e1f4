// One job in full.
import { copyButton } from "./copy.js";
import { h, list, put, putTitle, replace } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import * as act from "./act.js";
import * as rules from "./rules.js";
import { came, nameOf, rowOf } from "./row.js";
import { flow } from "./flow.js";
import { tree } from "./json.js";
import { life } from "./life.js";
import { after, waiters } from "./waits.js";
import { zone } from "./zone.js";

const TONES = { ready: "good", reserved: "note", dead: "bad", done: "good" };

function moment(instant) {
  return `${text.precise(instant)} (${text.until(instant, live.now())})`;
}

// What else was said of a job when it was added.
function ofSaid({ name, number, ms, text: said }) {
  const label = name === "keep" ? "Kept when done for" : name[0].toUpperCase() + name.slice(1);
  return [label, said ?? (ms === undefined ? text.full(number) : text.millis(ms))];
}

// The fields of a job, in order.
function facts(key, job) {
  const rule = job.rule;
  const given = (value, show = String) => (value === null || value === undefined ? null : show(value));
  const all = [
    ["State", job.state, TONES[job.state]],
    ["Failed because", given(job.reason), "bad"],
    ["Failed at", given(job.failed, moment)],
    ["Due", job.due >= text.LAST ? text.until(job.due) : given(job.due, moment)],
    ["Started", given(job.started, moment)],
    ["Finished", given(job.finished, moment)],
    ["Ran for", given(job.ran, text.millis)],
    ["Works on it", given(job.client)],
    ["Progress", given(job.progress)],
    ["Waits for the signal", given(job.awaits)],
    ["Lease expires", given(job.deadline, moment), job.deadline && job.deadline < live.now() ? "bad" : ""],
    ["Attempts", `${job.attempts}${job.maxAttempts ? ` of ${job.maxAttempts}` : ", no limit"}`],
    ["Priority", String(job.priority)],
    ["Lease", text.millis(job.ttr)],
    ["Backoff", job.backoff.length ? job.backoff.slice(0, 12).map(text.millis).join(", ") : null],
    ["Expires", given(job.expires, moment)],
    ["Token", given(job.token)],
    ["Group", given(job.group)],
    ...job.said.map(ofSaid),
    ["Rule", rule ? rule.text : null],
    ["Runs so far", rule ? came(rule, rowOf(key)) : null],
    ["Next runs", rule?.next.length ? rule.next.map(text.at).join(" · ") : null],
    ["Until", given(rule?.until, moment)],
    ["Skipped if later than", given(rule?.grace, text.millis)],
    ["Spread over", given(rule?.jitter, text.millis)],
    ["Then runs once more", job.successor ? `with ${long(job.successor)} of payload` : null],
  ];
  return all.filter(([, value]) => value !== null);
}

function hex(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const part = [...bytes.slice(at, at + 16)];
    const codes = part.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const letters = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(8, "0")}  ${codes.padEnd(47)}  ${letters}`);
  }
  return lines.join("\n");
}

function shown(payload) {
  if (payload.base64 !== undefined) return ["bytes", hex(payload.base64)];
  if (payload.shown === payload.length && /^\s*[[{]/.test(payload.text)) {
    try {
      JSON.parse(payload.text);
      return ["JSON", text.visible(text.indented(payload.text)), tree(payload.text)];
    } catch { /* no JSON then */ }
  }
  return ["text", text.visible(payload.text)];
}

// Of a result it is only known that there is more.
function long(it) {
  if (it.length === null) return `more than ${text.full(it.shown)} bytes`;
  return `${text.full(it.length)} ${it.length === 1 ? "byte" : "bytes"}`;
}

// A payload, or a result.
function content(title) {
  const kind = h("span", { class: "note" });
  const body = h("pre", { tabindex: "0", "aria-label": title });
  const section = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, title), kind, copyButton("Copy", body)), body);
  let last = null;
  return {
    section,
    show(it) {
      // What the user has folded stays folded until it changes.
      if (last === (last = JSON.stringify(it))) return;
      const [as, told, folding] = shown(it);
      const cut = it.shown === it.length ? "" : `, the first ${text.full(it.shown)} of them`;
      put(kind, `${as}, ${long(it)}${cut}`);
      if (folding) body.replaceChildren(folding);
      else put(body, told);
    },
  };
}

export function job(main, about, env) {
  const key = about.queue;
  env.trail.append(h("a", { href: "./" }, "Queues"), h("a", { href: `queue?queue=${key}` }, nameOf(key)));
  const name = h("span", { class: "name" });
  const mark = h("span", { class: "badge" });
  const buttons = h("div", { class: "actions" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const why = h("p", { class: "why", role: "status" });
  const gone = h("div", { class: "empty", hidden: true });
  const fields = h("dl", { class: "facts wide" });
  const [payload, result] = [content("Payload"), content("Result")];
  const [line, graph] = [life(), flow(key, about.id)];
  const before = after(key, about.id, env);
  const behind = waiters(key, about);
  const all = h("section", { class: "card" }, fields);
  const body = h("div", { hidden: true });
  main.append(h("div", { class: "queue-head" }, h("h1", {}, name, " ", mark), buttons), wrong, why, gone, body, zone(() => env.go(location.href, true)));
  live.see([key]);
  let last = null;
  let offered = null;
  const followed = live.follow((signal) => live.look("job", `queue=${key}&id=${about.id}`, signal), take, { weight: (answer) => answer.weight ?? 0 });
  putTitle(name, nameOf(`:${about.id ?? ""}`));
  document.title = `${name.textContent} – dq`;

  function take(answer, error) {
    put(wrong, error ?? "");
    if (!answer) return;
    last = answer.job;
    put(why, (last && answer.why) ?? "");
    if (last) {
      putTitle(name, last.name);
      payload.show(last.payload);
      if (last.result) result.show(last.result);
      before.show(last);
      line.notice(last);
    }
    gone.hidden = Boolean(last);
    body.hidden = !last;
    update();
  }

  function update() {
    put(gone, live.unknown() || "This job no longer exists: it was acknowledged or deleted, or it expired.");
    put(mark, last?.state ?? "", TONES[last?.state] ?? "");
    offer();
    if (!last) return;
    line.show(last);
    const sections = [["life", line.section, line.any(last)], ["graph", graph.section, graph.any(last)], ["facts", all, true], ["result", result.section, last.result], ["before", before.section, before.any(last)], ["behind", behind.section, behind.any(last)], ["payload", payload.section, true]];
    list(body, sections.filter(([, , there]) => there), ([name]) => name, ([, section]) => section);
    graph.centre();
    list(fields, facts(key, last), ([title]) => title, ([title]) => h("div", {}, h("dt", {}, title), h("dd", {})), (row, [, value, tone]) => put(row.lastChild, value, tone ?? ""));
  }

  function offer() {
    const wanted = live.mayAct(key) && last ? `${last.state} ${Boolean(last.rule)}` : "";
    if (wanted === offered) return;
    offered = wanted;
    replace(buttons, ...(wanted ? actions(last, (make) => make(key, last, () => followed.now())) : []));
  }

  return {
    update,
    close: () => {
      followed.stop();
      behind.close();
      graph.close();
    },
  };
}

// The actions on a job in its state. `ask` makes a dialog of the job as it is when the button is pressed.
function actions(job, ask) {
  const button = (words, make, isDanger) => act.button(words, () => ask(make), isDanger);
  const isScheduled = ["delayed", "ready"].includes(job.state);
  const kick = { dead: "Retry now", done: "Run again", blocked: "Run now" }[job.state];
  return [
    kick && button(kick, act.kick),
    job.state === "delayed" && button("Run now", act.runNow),
    job.state === "reserved" && button("Give back now", act.giveBack),
    isScheduled && button("Reschedule", act.reschedule),
    !["dead", "done"].includes(job.state) && button("Send a signal", act.signal),
    job.rule && button("Change the rule", rules.edit),
    !job.rule && (isScheduled || job.state === "dead") && button("Move", act.move),
    isScheduled || job.state === "blocked" ? button("Cancel", act.cancel, true) : button("Delete", act.remove, true),
  ].filter(Boolean);
}
