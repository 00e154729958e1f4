// All queues: a list of which only the visible lines are elements.
import { attribute, h, put, putName, svg } from "./dom.js";
import { sorting } from "./columns.js";
import * as live from "./live.js";
import { overview } from "./overview.js";
import * as text from "./text.js";

const OVERSCAN = 8;
const OLD_MS = 5000;
const LATE_US = 100_000;

const late = (us) => (us < 0 ? 1e15 : us);
const rate = (perSecond) => [text.rate(perSecond), perSecond ? "" : "quiet"];

// How many jobs are in a state.
const jobs = (id, title, index, wide, rank, tone = () => "") => ({
  id, title, wide, rank, by: (row) => row.jobs?.[index], show: (row) => [text.count(row.jobs[index]), row.jobs[index] ? tone(row) : "quiet"],
});

// What a column shows, what it sorts by, how wide it is, and its rank: where there is no room, the last ones are left out.
const COLUMNS = [
  { id: "name", title: "Queue", up: true, by: (row) => row.name },
  jobs("ready", "Ready", 1, 60, 0, (row) => oldest(row.oldest)[1] || "good"),
  jobs("delayed", "Delayed", 0, 68, 1),
  jobs("reserved", "Reserved", 2, 68, 2),
  jobs("dead", "Dead", 3, 48, 0, () => "bad"),
  jobs("blocked", "Blocked", 4, 62, 4),
  jobs("done", "Done", 5, 58, 4),
  { id: "in", title: "Added/s", wide: 62, rank: 3, by: (row) => row.rates?.[0], show: (row) => rate(row.rates[0]) },
  { id: "out", title: "Delivered/s", wide: 82, rank: 2, by: (row) => row.rates?.[1], show: (row) => rate(row.rates[1]) },
  { id: "trend", title: "Deliveries", wide: 76, rank: 3 },
  { id: "p50", title: "Late p50", wide: 100, rank: 5, by: (row) => late(row.late?.[0]), show: (row) => lateness(row.late[0]) },
  { id: "p99", title: "Late p99", wide: 100, rank: 3, by: (row) => late(row.late?.[1]), show: (row) => lateness(row.late[1]) },
  { id: "oldest", title: "Oldest ready", wide: 86, rank: 0, by: (row) => row.oldest, show: (row) => oldest(row.oldest) },
  { id: "waiting", title: "Waiting", wide: 58, rank: 4, by: (row) => row.waiting, show: (row) => [text.count(row.waiting), row.waiting ? "" : "quiet"] },
  { id: "next", title: "Next due", wide: 84, rank: 5, up: true, by: (row) => row.next, show: (row) => next(row.next) },
];

// Room for names beside the figures; on a phone they stand on a line of their own.
const NAMES = 300;
const NARROW = "(max-width: 730px)";
const [GAP, SIDES] = [14, 32];

// Which columns are shown: those in which something stands, as far as there is room. Once shown, a column stays.
function columns(grid, sorted) {
  const { heads } = sorted;
  const used = new Set(["name", "ready"]);
  let last = "";

  function fill(rows) {
    for (const column of COLUMNS) {
      const has = column.by ? (row) => column.by(row) > 0 : (row) => row.trend;
      if (!used.has(column.id) && (sorted.isBy(column) || rows.some(has))) used.add(column.id);
    }
    place();
  }

  function place() {
    const isNarrow = matchMedia(NARROW).matches;
    let room = grid.clientWidth - SIDES - (isNarrow ? 0 : NAMES);
    const shown = new Set(["name"]);
    for (const column of COLUMNS.filter(({ id }) => id !== "name" && used.has(id)).sort((a, b) => a.rank - b.rank)) {
      room -= column.wide + GAP;
      if (room >= 0) shown.add(column.id);
    }
    const figures = COLUMNS.filter(({ id }) => id !== "name" && shown.has(id)).map(({ wide }) => (isNarrow ? `minmax(0, ${wide}fr)` : `${wide}px`));
    grid.style.setProperty("--columns", [isNarrow ? "" : "minmax(130px, 1fr)", ...figures].join(" "));
    const now = [...shown].join(" ");
    if (now === last) return;
    last = now;
    heads.forEach((head, index) => { head.hidden = !shown.has(COLUMNS[index].id); });
  }

  return { fill, place, isShown: (index) => !heads[index].hidden };
}

const bySize = (value, limit) => (value >= 10 * limit ? "bad" : value >= limit ? "warn" : "");

// The server counts by buckets: only a bound is known.
export function lateness(us) {
  if (us === null || us === undefined) return ["–", "quiet"];
  return [us > 0 ? `≤ ${text.micros(us)}` : text.micros(us), us < 0 ? "bad" : bySize(us, LATE_US)];
}

export function oldest(ms) {
  return ms === null || ms === undefined ? ["–", "quiet"] : [text.millis(ms), bySize(ms, OLD_MS)];
}

function next(due) {
  if (due === null || due === undefined) return ["–", "quiet"];
  const ahead = due - live.now();
  return [ahead < 1000 ? "now" : text.millis(ahead), ""];
}

export function badge(row) {
  if (row.refusal) return [row.refusal, "bad"];
  if (live.isDown(row)) return ["not reachable", "bad"];
  if (row.gone) return ["gone", "quiet"];
  if (!row.paused) return ["", ""];
  return [row.paused < 0 ? "paused" : `paused, ${text.millis(Math.max(row.paused - live.now(), 0))} left`, "warn"];
}

// What hurts most first, as the board weighs it; a server that does not answer comes before deaths.
const DOWN = 4;
const trouble = (row) => (live.isDown(row) ? DOWN : row.look ?? 0);

function trend(element, values = []) {
  const most = Math.max(...values, 0);
  const [width, height] = [100, 22];
  const step = width / 30;
  const first = 30 - values.length;
  const bars = values.map((value, index) => (value > 0 ? `M${((first + index) * step).toFixed(1)} ${height}v${-Math.max((value / most) * height, 1.5).toFixed(1)}h${(step - 1).toFixed(1)}V${height}z` : ""));
  attribute(element.firstChild, "d", bars.join(""));
}

function trendBox() {
  return svg("svg", { viewBox: "0 0 100 22", class: "trend", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("path"));
}

export function table(main, about, env) {
  document.title = "Queues – dq";
  let filter = decode(about.filter);
  let order = [];
  const search = h("input", { type: "search", placeholder: "Filter queues", "aria-label": "Filter queues", spellcheck: "false", oninput: () => {
    filter = search.value;
    env.keep({ filter: encodeURIComponent(filter) });
    update();
    window.scrollTo(0, 0);
  } });
  search.value = filter;
  const figures = h("section", { class: "figures", "aria-label": "All queues together" });
  const head = (column, inside) => h("div", { role: "columnheader", class: `c-${column.id}` }, inside);
  const sorted = sorting(COLUMNS, env, head, () => update(), { usual: { by: trouble } });
  const body = h("div", { role: "rowgroup", class: "rows" });
  const grid = h("div", { role: "table", class: "table", "aria-label": "Queues" }, h("div", { role: "rowgroup", class: "titles" }, h("div", { role: "row" }, ...sorted.heads)), body);
  const empty = h("div", { class: "empty", hidden: true });
  const sum = h("p", { class: "note", id: "sum" });
  main.append(h("h1", { class: "hidden" }, "Queues"));
  const followed = overview(main);
  main.append(figures, h("div", { class: "tools" }, search, sum, h("a", { class: "button", href: "search" }, "Search all queues"), h("a", { class: "button", href: "recurring" }, "Recurring jobs")), grid, empty);
  const tiles = FIGURES.map(([title]) => tile(figures, title));
  const shown = columns(grid, sorted);
  const { place, move } = linesInSight(grid, body, () => order, shown);

  function update() {
    followed.update();
    if (!live.state.head) return;
    order = sorted.order(named(filter));
    shown.fill(order);
    if (live.isRead() && !(live.unknown() && !live.rows.size)) FIGURES.forEach(([, show], index) => show(live.state.head, tiles[index]));
    attribute(grid, "aria-rowcount", order.length + 1);
    const searching = live.state.head.nodes.some((node) => !node.complete && !node.down);
    const known = live.rows.size;
    put(sum, live.unknown() && !known ? "" : filter.trim() ? `${text.full(order.length)} of ${text.full(known)} queues` : `${text.full(known)} ${known === 1 ? "queue" : "queues"}${searching ? ", searching for more" : ""}`);
    grid.hidden = order.length === 0;
    empty.hidden = order.length > 0;
    if (order.length === 0) put(empty, nothing(known, searching));
    shown.place();
    place();
  }

  const resized = () => { shown.place(); place(); };
  window.addEventListener("scroll", place, { passive: true });
  window.addEventListener("resize", resized);
  return {
    update,
    move,
    close() {
      followed.stop();
      window.removeEventListener("scroll", place);
      window.removeEventListener("resize", resized);
      live.see([]);
    },
  };
}

// Only visible lines are elements; each is placed where its row is.
function linesInSight(grid, body, rows, shown) {
  const lines = [];

  function place() {
    const order = rows();
    const height = rowHeight(grid);
    const top = window.scrollY - (body.getBoundingClientRect().top + window.scrollY);
    const first = Math.max(Math.floor(top / height) - OVERSCAN, 0);
    const count = Math.min(Math.ceil(window.innerHeight / height) + 2 * OVERSCAN, order.length - first);
    while (lines.length < count) lines.push(line());
    lines.forEach((it, index) => {
      const row = index < count ? order[first + index] : null;
      if (!row) return it.element.remove();
      if (!it.element.isConnected) body.append(it.element);
      it.element.style.setProperty("transform", `translateY(${(first + index) * height}px)`);
      fill(it, row, first + index, shown);
    });
    body.style.setProperty("height", `${order.length * height}px`);
    const inSight = order.slice(Math.max(Math.floor(top / height), 0), Math.max(Math.ceil((top + window.innerHeight) / height), 0));
    live.see(inSight.map((row) => row.key));
  }

  // A line below the last element is made first, then focused.
  function move(by, at, links) {
    const element = document.activeElement?.closest?.("[data-line]");
    if (!element) return false;
    const index = Number(element.getAttribute("aria-rowindex")) - 2 + by;
    if (index < 0 || index >= rows().length) return true;
    const height = rowHeight(grid);
    const y = body.getBoundingClientRect().top + index * height;
    if (y < 120) window.scrollBy(0, y - 120);
    if (y > window.innerHeight - 2 * height) window.scrollBy(0, y - window.innerHeight + 2 * height);
    place();
    lines.find((it) => it.element.isConnected && it.element.getAttribute("aria-rowindex") === String(index + 2))?.link.focus({ preventScroll: true });
    return links.length > 0;
  }

  return { place, move };
}

// The rows whose names contain the filter, by their names.
function named(filter) {
  const part = filter.trim().toLowerCase();
  const found = [...live.rows.values()].filter((row) => !part || row.name.toLowerCase().includes(part));
  return found.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.key < b.key ? -1 : 1));
}

function line() {
  const link = h("a", {});
  const mark = h("span", { class: "badge" });
  const cells = COLUMNS.map((column) => {
    const cell = h("div", { role: "cell", class: `c-${column.id}` });
    if (column.id === "name") cell.append(link, mark);
    if (column.id === "trend") cell.append(trendBox());
    return cell;
  });
  const element = h("div", { role: "row", class: "line", "data-line": "" }, ...cells);
  element.addEventListener("click", (event) => {
    if (!event.target.closest("a") && !String(getSelection())) link.click();
  });
  return { element, link, mark, cells };
}

function fill(line, row, index, shown) {
  putName(line.link, row.name);
  attribute(line.link, "href", `queue?queue=${row.key}`);
  put(line.mark, row.db === undefined ? badge(row)[0] : `db ${row.db} ${badge(row)[0]}`, badge(row)[1]);
  attribute(line.element, "aria-rowindex", index + 2);
  line.element.classList.toggle("old", Boolean(row.gone || row.refusal) || live.isDown(row));
  attribute(line.mark, "title", row.refusal);
  COLUMNS.forEach((column, place) => {
    line.cells[place].hidden = !shown.isShown(place);
    if (column.id === "trend") trend(line.cells[place].firstChild, row.trend);
    else if (column.show) put(line.cells[place], ...(row.jobs ? column.show(row) : ["", ""]));
  });
}

function nothing(known, searching) {
  if (known > 0) return "No queue name contains this text.";
  if (live.state.head.nodes.some((node) => node.down || (node.trouble && !node.module))) return "There is nothing to show.";
  if (live.unknown()) return live.unknown();
  return searching ? "Searching for queues." : "There are no queues yet. The first DQ.ADD creates one.";
}

function rowHeight(grid) {
  return parseFloat(getComputedStyle(grid).getPropertyValue("--row")) || 44;
}

export function decode(word) {
  try {
    return decodeURIComponent(word ?? "");
  } catch {
    return "";
  }
}

export function tile(parent, title) {
  const value = h("dd", {}, "–");
  const small = h("dd", { class: "small" });
  parent.append(h("dl", { class: "tile" }, h("dt", {}, title), value, small));
  return { value, small };
}

const FIGURES = [
  ["Ready", (head, it) => (put(it.value, text.count(head.jobs[1])), put(it.small, `${text.count(head.jobs[2])} reserved`))],
  ["Delayed", (head, it) => (put(it.value, text.count(head.jobs[0])), put(it.small, `${text.count(head.jobs[4])} blocked`))],
  ["Dead", (head, it) => (put(it.value, text.count(head.jobs[3]), head.jobs[3] ? "bad" : ""), put(it.small, live.unseen() ? "" : `${text.rate(head.rates[5])} die a second`))],
  ["Delivered a second", (head, it) => (put(it.value, live.unseen() ? "–" : text.rate(head.rates[1])), put(it.small, live.unseen() ? "not seen on a replica" : `${text.rate(head.rates[0])} added, ${text.rate(head.rates[2])} acked${head.jobs[5] ? `; ${text.count(head.jobs[5])} done are kept (${text.bytes(head.doneBytes)})` : ""}`))],
  ["Lateness", (head, it) => (put(it.value, head.late === null ? "–" : text.micros(head.late)), put(it.small, "mean of the last deliveries"))],
  ["Waiting clients", (head, it) => (put(it.value, live.unseen() ? "–" : text.count(head.waiting)), put(it.small, live.unseen() ? "not seen on a replica" : "in DQ.BPOP"))],
];
