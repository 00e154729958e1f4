// The jobs that a job waits for, or came after; and the jobs that wait for it.
import { attribute, h, list, put } from "./dom.js";
import { sheet } from "./columns.js";
import { NAME, worded } from "./found.js";
import * as live from "./live.js";
import { jobLink } from "./row.js";
import * as text from "./text.js";

const ON_DEAD = {
  wait: "If one of them dies, it keeps waiting until that one is done. If one is deleted or expires, it dies.",
  run: "If one of them dies, is deleted or expires, that counts as finished.",
  die: "If one of them dies, is deleted or expires, it dies too.",
};

const FAR = "How far the group is";

export function after(key, id, env) {
  const title = h("h2", {});
  const note = h("p", { class: "note" });
  const jobs = sheet("Waits for", [
    { ...NAME, make: (job) => jobLink(key, job) },
    { title: "Outcome", up: true, by: (job) => job.outcome, show: (job) => [job.outcome ?? "not finished", { done: "good", dead: "bad" }[job.outcome] ?? "quiet"] },
    worded("Result or reason", (job) => job.value),
  ], env, { letter: "o" });
  const further = h("p", { class: "note" });
  const whole = h("a", { href: `flow?queue=${key}&id=${id}` }, FAR);
  return {
    section: h("section", { class: "card" }, h("div", { class: "card-head" }, title, whole), note, jobs.table, further),
    any: ({ waits }) => waits.count > 0 || waits.group !== null,
    show({ state, waits }) {
      put(title, state === "blocked" ? "Waits for" : "Came after");
      put(note, waits.group === null ? ON_DEAD[waits.onDead] ?? "" : `All jobs of the group ${waits.group}`);
      jobs.show(waits.jobs);
      whole.hidden = waits.group === null;
      put(further, waits.count > waits.jobs.length ? `and ${text.full(waits.count - waits.jobs.length)} more` : "");
    },
  };
}

// Asked for only if the queue has blocked jobs: the server looks through them.
export function waiters(key, about) {
  const here = `job?queue=${key}&id=${about.id}`;
  const ids = h("ul", { class: "ids" });
  const note = h("p", { class: "note" });
  const far = h("a", { hidden: true }, FAR);
  const wrong = h("p", { class: "wrong", role: "alert" });
  const further = h("div", { class: "further" });
  const section = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "What waits for it"), far), wrong, ids, note, further);
  let followed = null;

  function close() {
    followed?.stop();
    followed = null;
  }

  function take(found, error) {
    put(wrong, error ?? "");
    if (!found) return;
    far.hidden = !found.callback;
    attribute(far, "href", found.callback && `flow?queue=${key}&id=${found.callback.id}`);
    list(ids, found.jobs, (job) => job.id, (job) => h("li", {}, jobLink(key, job)));
    const part = found.more || about.cursor ? `, of ${text.full(found.seen)} blocked jobs checked` : "";
    const more = found.count > found.jobs.length ? ` The first ${text.full(found.jobs.length)} are listed.` : "";
    put(note, `${found.count === 0 ? "None" : text.jobs(found.count)}${part}.${more}`);
    const links = [];
    if (about.cursor) links.push(["First jobs", here]);
    if (found.more) links.push(["Search further", `${here}&cursor=${found.more}`]);
    list(further, links, ([name]) => name, ([name, href]) => h("a", { class: "button", href }, name), (link, [, href]) => attribute(link, "href", href));
  }

  return {
    section,
    any({ state, group }) {
      // A batch goes on when one of its jobs is done.
      const there = (state !== "done" || group !== null) && live.rows.get(key)?.jobs?.[4] > 0;
      if (!there) close();
      else followed ??= live.follow((signal) => live.look("waiters", `queue=${key}&id=${about.id}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), take, { every: 30_000 });
      return there;
    },
    close,
  };
}
