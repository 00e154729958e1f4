// Which view the address asks for, and the frame around it.
import { attribute, h, put } from "./dom.js";
import * as live from "./live.js";
import { table } from "./table.js";
import { queue } from "./queue.js";
import { jobs } from "./jobs.js";
import { job } from "./job.js";
import { recurring } from "./recurring.js";
import { groups } from "./groups.js";
import { search } from "./search.js";
import { signals } from "./signals.js";
import { whole } from "./whole.js";
import { workers } from "./workers.js";

const views = { "": table, queue, jobs, job, recurring, groups, search, signals, flow: whole, workers };
// Pages that are about all queues unless one is named.
const OF_ALL = ["recurring", "search"];
const main = document.getElementById("main");
const trail = document.getElementById("trail");
const base = new URL(document.baseURI);
const ROLES = { master: "master", slave: "replica" };
let shown = null;

// Values stay encoded, since names are bytes that need not be text.
function words(search) {
  const found = {};
  for (const pair of search.replace(/^\?/, "").split("&")) {
    const equals = pair.indexOf("=");
    if (equals > 0) found[pair.slice(0, equals)] = pair.slice(equals + 1);
  }
  return found;
}

function display() {
  const name = location.pathname.slice(base.pathname.length);
  const about = words(location.search);
  const make = Object.hasOwn(views, name) ? views[name] : null;
  shown?.close?.();
  main.replaceChildren();
  trail.replaceChildren();
  if (!make || (name && !about.queue && !OF_ALL.includes(name))) {
    shown = null;
    document.title = "dq";
    main.append(h("div", { class: "empty" }, h("h1", {}, "Page not found"), h("p", {}, h("a", { href: "./" }, "All queues"))));
    return;
  }
  shown = make(main, about, { about, go, trail, at, keep });
  frame();
  shown.update?.();
}

function go(address, replace = false) {
  const to = new URL(address, base);
  if (!replace) {
    returning += 1;
    history.replaceState({ y: window.scrollY, href: document.activeElement?.getAttribute("href") }, "");
  }
  if (to.href !== location.href) history[replace ? "replaceState" : "pushState"](null, "", to);
  display();
  if (!replace) {
    window.scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

// The address of this view with some words changed, or left out.
function at(changed) {
  const about = Object.entries({ ...words(location.search), ...changed }).filter(([, value]) => value);
  const name = location.pathname.slice(base.pathname.length);
  return about.length ? `${name}?${about.map(([word, value]) => `${word}=${value}`).join("&")}` : name || "./";
}

// Stores in the address what a view remembers, without making the view anew.
function keep(changed) {
  history.replaceState(history.state, "", new URL(at(changed), base));
}

function frame() {
  const trouble = document.getElementById("trouble");
  const text = why();
  trouble.hidden = !text;
  put(trouble, text);
  const nodes = live.state.head?.nodes ?? [];
  const first = nodes.find((node) => node.version) ?? nodes[0];
  const server = nodes.length > 1 ? `${nodes.length} nodes, ${first.version ?? ""}` : first ? [first.name, first.version, ROLES[first.role]].filter(Boolean).join(" · ") : "";
  const { held } = live.state;
  const replica = live.state.isReplica ? ", to look at only" : "";
  put(document.getElementById("server"), held ? "Refreshing is stopped" : server + replica, held ? "" : text ? "bad" : "good");
  attribute(document.getElementById("hold"), "aria-pressed", held);
  const { user, session } = live.state;
  const visitor = document.getElementById("visitor");
  visitor.hidden = !user || session;
  put(visitor, user ?? "");
  const servers = document.getElementById("servers");
  servers.hidden = !live.state.server;
  put(servers, live.state.server ?? "");
  document.getElementById("sign-out").hidden = !session;
}

function why() {
  if (live.state.link === "lost") return "No connection to the board. This page is out of date; reconnecting.";
  const nodes = live.state.head?.nodes ?? [];
  const wrong = nodes.find((node) => node.down ?? node.trouble);
  if (!wrong) return "";
  if (!wrong.down) return wrong.trouble;
  const more = nodes.filter((node) => node.down).length - 1;
  const old = !live.isRead() ? "Nothing has been read" : nodes.length > 1 ? "Figures of such queues are out of date" : "This page is out of date";
  const cannot = live.downTold(wrong.down) === wrong.down ? "cannot be read" : "cannot be reached";
  return `${wrong.name}${more ? ` and ${more} more` : ""} ${cannot}: ${wrong.down.replace(/\.$/, "")}. ${old}; reconnecting.`;
}

document.addEventListener("click", (event) => {
  const link = event.target.closest("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  // In a drawing, a link's href is not a string.
  const to = new URL(link.getAttribute("href"), base);
  if (to.origin !== base.origin || !to.pathname.startsWith(base.pathname) || link.hasAttribute("download")) return;
  if (link.getAttribute("href").startsWith("#")) {
    event.preventDefault();
    return main.focus();
  }
  event.preventDefault();
  go(to.href);
});
// Going back leads to the same place, as soon as the page is long enough again.
const RETURN_MS = 5000;
history.scrollRestoration = "manual";
let returning = 0;
window.addEventListener("popstate", (event) => {
  display();
  const [y, own, end] = [event.state?.y ?? 0, (returning += 1), performance.now() + RETURN_MS];
  const focus = event.state?.href ? `[href="${CSS.escape(event.state.href)}"]` : null;
  const back = () => {
    if (own !== returning || performance.now() > end) return;
    window.scrollTo(0, y);
    const link = focus && main.querySelector(focus);
    if (Math.abs(window.scrollY - y) > 1 || (focus && !link)) requestAnimationFrame(back);
    else link?.focus({ preventScroll: true });
  };
  back();
});
for (const moved of ["wheel", "touchstart", "keydown"]) window.addEventListener(moved, () => { returning += 1; }, { passive: true });

document.getElementById("sign-out").addEventListener("click", live.signOut);

const KEYS = [["/", "search or filter"], ["↑ ↓", "move in a list"], ["Enter", "open"], ["u", "one level up"], ["p", "stop or resume refreshing"], ["?", "this list"]];

function keys() {
  const rows = KEYS.flatMap(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]);
  const dialog = h("dialog", { "aria-label": "Keys" }, h("h2", {}, "Keys"), h("dl", { class: "keys" }, ...rows),
    h("form", { method: "dialog" }, h("button", { class: "main" }, "Close")));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
document.getElementById("keys").addEventListener("click", keys);

function move(by) {
  const links = [...main.querySelectorAll("[data-line] a")].filter((link) => link.offsetParent);
  const place = links.indexOf(document.activeElement);
  if (shown?.move?.(by, place, links)) return;
  links[Math.min(Math.max(place + by, 0), links.length - 1)]?.focus();
}

const hold = () => live.hold(!live.state.held);
document.getElementById("hold").addEventListener("click", hold);

document.addEventListener("keydown", (event) => {
  if (event.metaKey || event.ctrlKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.matches("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const up = trail.querySelector("a:last-of-type");
  const todo = {
    "/": () => main.querySelector("input[type=search]")?.focus(),
    "?": keys,
    p: hold,
    u: () => go(up?.href ?? "./"),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
  }[event.key];
  if (todo) {
    event.preventDefault();
    todo();
  }
});

live.listen(() => {
  frame();
  shown?.update?.();
});
live.start();
display();
