// The jobs that a job waits for, or came after; and the jobs that wait for it.
import { attribute, h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

const ON_DEAD = {
  wait: "If one of them dies, it keeps waiting until that one is done. If one is deleted or expires, it dies.",
  run: "If one of them dies, is deleted or expires, that counts as finished.",
  die: "If one of them dies, is deleted or expires, it dies too.",
};

function linked(key) {
  return (job) => h("tr", { "data-line": "" }, h("td", { class: "o0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)), h("td", { class: "o1" }), h("td", { class: "o2" }));
}

export function after(key) {
  const title = h("h2", {});
  const note = h("p", { class: "note" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", "aria-label": "Waits for" }, h("thead", {}, h("tr", {}, ...["Id", "Outcome", "Result or reason"].map((name, index) => h("th", { scope: "col", class: `o${index}` }, name)))), body);
  const further = h("p", { class: "note" });
  return {
    section: h("section", { class: "card" }, h("div", { class: "card-head" }, title), note, table, further),
    any: ({ waits }) => waits.count > 0 || waits.group !== null,
    show({ state, waits }) {
      const waiting = state === "blocked";
      put(title, waiting ? "Waits for" : "Came after");
      put(note, waits.group === null ? ON_DEAD[waits.onDead] ?? "" : `All jobs of the group ${waits.group}`);
      table.hidden = waits.count === 0;
      list(body, waits.jobs, (job) => job.id, linked(key), (row, job) => {
        put(row.children[1], job.outcome ?? "not finished", { done: "good", dead: "bad" }[job.outcome] ?? "quiet");
        put(row.children[2], job.value ?? "–");
        attribute(row.children[2], "title", job.value);
      });
      put(further, waits.count > waits.jobs.length ? `and ${text.full(waits.count - waits.jobs.length)} more` : "");
    },
  };
}

// Asked for only if the queue has blocked jobs: the server looks through them.
export function waiters(key, about) {
  const here = `job?queue=${key}&id=${about.id}`;
  const ids = h("ul", { class: "ids" });
  const note = h("p", { class: "note" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const further = h("div", { class: "further" });
  const section = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "What waits for it")), wrong, ids, note, further);
  let followed = null;

  function close() {
    followed?.stop();
    followed = null;
  }

  function take(found, error) {
    put(wrong, error ?? "");
    if (!found) return;
    list(ids, found.jobs, (job) => job.id, (job) => h("li", {}, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)));
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
    any({ state }) {
      const there = state !== "done" && live.rows.get(key)?.jobs?.[4] > 0;
      if (!there) close();
      else followed ??= live.follow((signal) => live.look("waiters", `queue=${key}&id=${about.id}${about.cursor ? `&cursor=${about.cursor}` : ""}`, signal), take, { every: 30_000 });
      return there;
    },
    close,
  };
}
