// All servers: a line for each, which links to its board.
import { sheet } from "./columns.js";
import { h, put, putName } from "./dom.js";
import { downTold, follow, get, signOut } from "./live.js";
import * as text from "./text.js";

const wrong = document.getElementById("wrong");
const visitor = document.getElementById("visitor");
const leave = document.getElementById("sign-out");

leave.addEventListener("click", signOut);

const isKnown = ({ head }) => head.nodes.some((node) => node.version && !node.unsynced);
const isReplica = (head) => head.nodes.some((node) => node.role === "slave");
const figure = (title, of, show = text.count, tone = "") => {
  const by = (server) => (isKnown(server) ? of(server.head) : null);
  return { title, by, show: (server) => (by(server) === null ? "–" : [show(by(server)), by(server) ? tone : ""]) };
};

// What is wrong with a server, in a word and in full.
function trouble({ head }) {
  const why = head.nodes.map((node) => node.down ?? node.trouble).find(Boolean);
  const down = head.nodes.find((node) => node.down)?.down;
  return [down ? downTold(down) : why ?? (!isKnown({ head }) ? "connecting" : isReplica(head) ? "replica" : ""), why ? "bad" : "", why];
}

const all = sheet("Servers", [
  { title: "Server", up: true, by: ({ name }) => name, make: ({ name }) => putName(h("a", { href: `${name}/` }), name) },
  figure("Queues", (head) => head.queues),
  figure("Ready", (head) => head.jobs[1]),
  figure("Delayed", (head) => head.jobs[0]),
  figure("Reserved", (head) => head.jobs[2]),
  figure("Dead", (head) => head.jobs[3], text.count, "bad"),
  figure("Delivered/s", (head) => (isReplica(head) ? null : head.rates[1]), text.rate),
  { title: "State", by: (server) => trouble(server)[0], show: trouble },
], { about: {}, keep() {} }, { key: ({ name }) => name, letter: "s" });
wrong.after(all.table);

follow(() => get("api/servers"), (answer, error) => {
  put(wrong, error ?? "");
  if (!answer) return;
  const { user, session } = answer;
  visitor.hidden = !user || session;
  put(visitor, user ?? "");
  leave.hidden = !session;
  all.show(answer.servers);
}, { every: 2000 });
