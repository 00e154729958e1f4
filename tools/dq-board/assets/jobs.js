// The jobs of one state, page by page, and the search by id.
import { attribute, h, list, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";
import { head, STATES } from "./queue.js";
import { decode } from "./table.js";

// What the instant of a job means in each state, and how it is told.
const AT = {
  delayed: ["Due", (at, now) => [text.until(at, now), ""]],
  ready: ["Late by", (at, now) => [text.millis(Math.max(now - at, 0)), now - at > 50_000 ? "bad" : now - at > 5000 ? "warn" : ""]],
  reserved: ["Lease ends", (at, now) => (at < now ? ["over", "bad"] : [text.until(at, now), at - now < 2000 ? "warn" : ""])],
  dead: ["Died", (at, now) => [text.until(at, now), ""]],
};

const NONE = {
  delayed: "No job waits for its time.",
  ready: "No job is ready: all that was due has been delivered.",
  reserved: "No worker has a job.",
  dead: "No job has failed for good.",
};

export function jobs(main, about, env) {
  const key = about.queue;
  const state = STATES.includes(about.state) ? about.state : "delayed";
  const updateHead = head(main, key, state, env);
  const [title, show] = AT[state];
  const last = state === "dead" ? "Reason" : "Payload";
  const search = h("input", { type: "search", placeholder: "Search by id", "aria-label": "Search by id", spellcheck: "false" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const body = h("tbody", {});
  const table = h("table", { class: "jobs", hidden: true }, h("thead", {}, h("tr", {}, ...["Id", title, "Attempts", "Priority", "Size", last].map((name, index) => h("th", { scope: "col", class: `j${index}` }, name)))), body);
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  main.append(h("form", { class: "tools", onsubmit: (event) => { event.preventDefault(); find(); } }, search, h("button", { type: "submit" }, "Search")), wrong, table, empty, further);
  let answer = null;
  let followed = null;

  const page = `queue=${key}&state=${state}${about.from ? `&from=${about.from}` : ""}${about.skip ? `&skip=${about.skip}` : ""}`;
  if (about.find) {
    search.value = decode(about.find);
    seek("");
  } else followed = live.follow((signal) => live.look("jobs", page, signal), take, { weight: (found) => found.jobs.reduce((sum, job) => sum + job.length, 0) });

  function take(found, error) {
    put(wrong, error ?? "");
    if (found) answer = found;
    update();
  }

  function find() {
    const id = encodeURIComponent(search.value);
    env.go(search.value ? `jobs?queue=${key}&state=${state}&find=${id}` : `jobs?queue=${key}&state=${state}`);
  }

  // Found by id, whatever the state.
  async function seek(cursor) {
    further.replaceChildren(h("p", { class: "note" }, "Searching."));
    try {
      const found = await live.look("search", `queue=${key}&id=${about.find}${cursor ? `&cursor=${cursor}` : ""}`);
      for (const it of found.found) {
        body.append(h("tr", { "data-line": "" }, h("td", { class: "j0", colspan: 6 }, h("a", { href: `job?queue=${key}&id=${it.id}` }, it.name))));
      }
      further.replaceChildren();
      if (found.more) further.append(h("button", { type: "button", onclick: () => seek(found.more) }, "Search further"));
      table.hidden = !body.children.length;
      empty.hidden = !table.hidden;
      put(empty, found.more ? "None among those looked at so far." : "No job has this in its id.");
    } catch (error) {
      put(wrong, error.message);
      further.replaceChildren();
    }
  }

  function line(job) {
    return h("tr", { "data-line": "" }, h("td", { class: "j0" }, h("a", { href: `job?queue=${key}&id=${job.id}` }, job.name)), ...[1, 2, 3, 4, 5].map((index) => h("td", { class: `j${index}` })));
  }

  function fill(element, job) {
    const now = live.now();
    const cells = element.children;
    put(cells[1], ...show(job.at, now));
    attribute(cells[1], "title", text.at(job.at));
    put(cells[2], text.full(job.attempts));
    put(cells[3], String(job.priority));
    put(cells[4], text.bytes(job.length));
    put(cells[5], state === "dead" ? job.reason ?? "–" : job.payload);
    attribute(cells[5], "title", cells[5].textContent.slice(0, 300));
  }

  function update() {
    updateHead();
    if (!answer) return;
    list(body, answer.jobs, (job) => job.id, line, fill);
    table.hidden = answer.jobs.length === 0;
    empty.hidden = !table.hidden;
    put(empty, about.from || about.skip ? "There are no jobs on this page any more." : NONE[state]);
    const here = `jobs?queue=${key}&state=${state}`;
    const links = [];
    if (about.from || about.skip) links.push(["First page", here]);
    if (answer.more) links.push(["Next page", `${here}&from=${answer.more.from}&skip=${answer.more.skip}`]);
    list(further, links, ([name]) => name, ([name, href]) => h("a", { class: "button", href }, name), (link, [, href]) => attribute(link, "href", href));
  }

  return {
    update: () => (about.find ? updateHead() : update()),
    close: () => followed?.stop(),
  };
}
