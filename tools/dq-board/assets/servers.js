// All servers: a line for each, which links to its board.
import { attribute, h, list, put } from "./dom.js";
import { follow, get, signOut } from "./live.js";
import * as text from "./text.js";

const lines = document.getElementById("servers");
const wrong = document.getElementById("wrong");
const visitor = document.getElementById("visitor");
const leave = document.getElementById("sign-out");
const CELLS = 7;

leave.addEventListener("click", signOut);

function make({ name }) {
  return h("tr", {}, h("td", { class: "s0" }, h("a", { href: `${name}/` }, name)), ...Array.from({ length: CELLS }, (_, index) => h("td", { class: `s${index + 1}` })));
}

function fill(line, { head }) {
  const [, queues, ready, delayed, reserved, dead, delivered, state] = line.children;
  const known = head.nodes.some((node) => node.version);
  const count = (cell, number, tone = "") => put(cell, known ? text.count(number) : "–", number && known ? tone : "");
  count(queues, head.queues);
  count(ready, head.jobs[1]);
  count(delayed, head.jobs[0]);
  count(reserved, head.jobs[2]);
  count(dead, head.jobs[3], "bad");
  put(delivered, known ? text.rate(head.rates[1]) : "–");
  const down = head.nodes.filter((node) => node.down);
  const trouble = head.nodes.map((node) => node.down ?? node.trouble).find(Boolean);
  put(state, down.length ? "cannot be reached" : trouble || (known ? "" : "connecting"), trouble ? "bad" : "");
  attribute(state, "title", trouble || null);
}

follow(() => get("api/servers"), (answer, error) => {
  put(wrong, error ?? "");
  if (!answer) return;
  const { user, session } = answer;
  visitor.hidden = !user || session;
  put(visitor, user ?? "");
  leave.hidden = !session;
  list(lines, answer.servers, (server) => server.name, make, fill);
}, { every: 2000 });
