// The jobs around one as a graph: a column for each step; many jobs are counted.
import { attribute, centre, h, list, put, putName, svg } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

const [WIDE, HIGH, GAP, BETWEEN] = [190, 30, 8, 66];
export const TONES = { dead: "bad", deleted: "bad", expired: "bad", done: "good", ready: "ready", reserved: "note", blocked: "open" };

export function flow(key, id) {
  const drawing = svg("svg", { class: "flow", role: "group", "aria-label": "What it is after, and what is after it" });
  const note = h("p", { class: "note" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const strip = h("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "Graph" }, drawing);
  // Where there is no room for columns side by side.
  const narrow = h("ol", { class: "columns" });
  const section = h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "Before and after"), note, h("a", { href: `flow?queue=${key}&id=${id}` }, "The whole flow")), wrong, strip, narrow);
  let isCentred = false;
  let followed = null;
  let shown = false;

  function take(answer, error) {
    put(wrong, error ?? "");
    if (!answer) return;
    shown = answer.columns.length > 1;
    put(note, [answer.cause && `It waits as ${answer.cause.name} is dead.`, answer.part && "Not all blocked jobs were looked through."].filter(Boolean).join(" "));
    draw(answer);
  }

  function draw({ columns, edges }) {
    const rows = (column) => column.jobs.length + Object.keys(column.more).length;
    const most = Math.max(...columns.map(rows));
    const height = most * (HIGH + GAP) - GAP;
    const width = columns.length * (WIDE + BETWEEN) - BETWEEN;
    const places = new Map();
    const nodes = columns.flatMap((column, index) => {
      const top = (height - (rows(column) * (HIGH + GAP) - GAP)) / 2;
      const x = index * (WIDE + BETWEEN);
      const box = (row) => ({ x, y: top + row * (HIGH + GAP) });
      const jobs = column.jobs.map((job, row) => {
        places.set(job.id, box(row));
        return node(key, job, box(row), column.level === 0);
      });
      return [...jobs, ...Object.entries(column.more).map(([state, count], row) => counted(state, count, box(column.jobs.length + row)))];
    });
    const curves = edges.map(([from, to]) => curve(places.get(from), places.get(to))).join("");
    drawing.setAttribute("viewBox", `-1 -1 ${width + 2} ${height + 2}`);
    drawing.setAttribute("width", width + 2);
    drawing.setAttribute("height", height + 2);
    drawing.replaceChildren(svg("path", { class: "edges", d: curves }), ...nodes);
    list(narrow, columns, (column) => column.level, ({ level }) => h("li", {}, h("b", {}, distance(level)), " ", h("ul")), (part, { level, jobs, more }) => {
      const rest = Object.entries(more).map(([state, count]) => ({ id: `and ${state}`, state, said: `and ${text.full(count)} ${state}` }));
      list(part.lastChild, [...jobs, ...rest], (job) => job.id, (job) => h("li", {}, job.said ? "" : putName(h("a", { href: `job?queue=${key}&id=${job.id}`, "aria-current": level ? null : "true" }), job.name), " ", h("span", {})), (line, job) => put(line.lastChild, job.said ?? job.state, TONES[job.state] ?? ""));
    });
  }

  return {
    section,
    // Once it is on the page.
    centre() {
      const here = drawing.querySelector(".here");
      if (isCentred || !here || !section.isConnected) return;
      isCentred = true;
      centre(strip, here);
    },
    // The graph is asked for only if the job may have one.
    any(job) {
      const there = job.waits.count > 0 || (job.state !== "done" && live.rows.get(key)?.jobs?.[4] > 0);
      if (there) followed ??= live.follow((signal) => live.look("flow", `queue=${key}&id=${id}`, signal), take, { every: 10_000 });
      return there && shown;
    },
    close: () => followed?.stop(),
  };
}

// How far a column is from the job.
function distance(level) {
  if (!level) return "This job";
  const steps = Math.abs(level);
  return `${steps} ${steps === 1 ? "step" : "steps"} ${level < 0 ? "before" : "after"}`;
}

function curve(from, to) {
  const [x, y, end, at] = [from.x + WIDE, from.y + HIGH / 2, to.x, to.y + HIGH / 2];
  const bend = Math.max((end - x) / 2, 20);
  return `M${x} ${y}C${x + bend} ${y} ${end - bend} ${at} ${end} ${at}`;
}

function node(key, job, { x, y }, here) {
  const name = job.name.length > 22 ? `${job.name.slice(0, 21)}…` : job.name;
  const parts = [svg("title", {}, `${job.name}: ${job.state}`), ...labelled(name, x, y)];
  return svg("a", { class: here ? "node here" : "node", href: `job?queue=${key}&id=${job.id}`, "data-tone": TONES[job.state] ?? "", "aria-label": `${job.name}: ${job.state}`, ...(here ? { "aria-current": "true" } : {}) }, ...parts);
}

function counted(state, count, { x, y }) {
  return svg("g", { class: "node more", "data-tone": TONES[state] ?? "" }, ...labelled(`and ${text.full(count)} ${state}`, x, y));
}

function labelled(words, x, y) {
  return [svg("rect", { x, y, width: WIDE, height: HIGH, rx: 8 }), svg("circle", { cx: x + 15, cy: y + HIGH / 2, r: 4.5 }), svg("text", { x: x + 27, y: y + HIGH / 2 + 4.5 }, words)];
}
