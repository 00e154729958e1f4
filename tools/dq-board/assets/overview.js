// What needs a look, over all queues, and what they did together in the last hour.
import { attribute, h, list, put, putName, svg } from "./dom.js";
import * as live from "./live.js";
import { axis } from "./scale.js";
import { bars, HEIGHT, leveled, shiftsTold } from "./shape.js";
import * as text from "./text.js";

const WIDTH = 720;
const EVERY_MS = 5000;
const PART_MS = 10_000;
const LINES = [["past", "delivered"], ["failed", "failed"], ["waiting", "ready"], ["shift", "workers came or went"]];

const sum = (values) => values.reduce((all, value) => all + value, 0);

// How far the first look at all queues is.
function looked() {
  if (!live.isRead() && live.state.head?.nodes.every((node) => node.down || node.trouble)) return "No queue can be read";
  const [rows, known] = [[...live.rows.values()], live.state.head?.queues ?? 0];
  const read = rows.filter((row) => row.jobs || row.gone || row.refusal).length;
  return `Still looking: ${text.full(read)} of ${text.full(Math.max(rows.length, known))} queues read`;
}

export function overview(main) {
  const title = h("h2", {});
  const calm = h("p", { class: "note" });
  const needy = h("ul", { class: "needy" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const told = h("p", { class: "readout" });
  const drawing = svg("svg", { class: "forecast", role: "img", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" });
  const paths = LINES.map(([name]) => drawing.appendChild(svg("path", { class: name })));
  const legend = h("ul", { class: "legend" }, ...LINES.map(([name, meaning]) => h("li", { class: name, hidden: name === "shift" }, meaning)));
  main.append(h("div", { class: "two first" },
    h("section", { class: "card", "aria-label": "What needs a look" }, h("div", { class: "card-head" }, title), needy, calm, wrong),
    h("section", { class: "card", "aria-label": "All queues in the last hour" }, h("div", { class: "card-head" }, h("h2", {}, "The last hour")), told, h("div", { class: "drawing" }, drawing), legend)));
  // Once it has looked at all queues, the board finds new ones as they come.
  let [isWhole, hellos] = [false, 0];
  let last = null;
  let shifted = "";
  // After a hello an equal answer is news.
  const followed = live.follow(async (signal) => ({ isWhole, hellos, ...(await live.look("overview", "", signal)) }), (answer, error) => {
    put(wrong, error ?? "");
    if (answer) show(last = answer);
  }, { every: EVERY_MS });

  function update() {
    sumUp();
    if (hellos !== live.state.hellos) [hellos, isWhole, last] = [live.state.hellos, false, null];
    if (isWhole) return;
    isWhole = Boolean(live.state.head?.whole);
    if (isWhole) followed.now();
    else tell();
  }

  function tell() {
    const { count = 0, queues = [], isWhole } = last ?? {};
    const others = Math.max(live.rows.size - count, 0);
    if (!count && live.unknown()) return put(title, "What needs a look is not known", "warn"), put(calm, live.unknown());
    // Figures of a server in trouble may be old, or not all.
    const isSure = live.state.head?.nodes.every((node) => !node.trouble);
    put(title, count ? `${text.full(count)} ${count === 1 ? "queue needs" : "queues need"} a look` : isWhole ? "No queue needs a look" : looked(), count ? "warn" : isWhole && isSure ? "good" : "");
    put(calm, [count > queues.length && `${text.full(count - queues.length)} more of them stand first in the list below.`, isWhole ? others && `${text.full(others)} ${others === 1 ? "is" : "are"} calm.` : count && `${looked()}.`].filter(Boolean).join(" "));
  }

  function show(answer) {
    tell();
    list(needy, answer.queues, (it) => it.key, (it) => h("li", {}, h("a", { href: `queue?queue=${it.key}` }), it.db === undefined ? "" : ` (db ${it.db})`, " ", h("span", {})), (line, it) => { putName(line.firstChild, it.name); put(line.lastChild, it.why.join("; ")); });
    draw(answer);
  }

  function draw({ delivered, failed, ready, known, shifts }) {
    const done = axis(Math.max(...delivered.map((value, index) => value + failed[index]), 1), false);
    const place = { bar: WIDTH / known.length, level: leveled(done) };
    const waiting = leveled(axis(Math.max(...ready, 1), false));
    let pen = "M";
    const line = ready.map((value, index) => {
      if (!known[index]) return (pen = "M"), "";
      const step = `${pen}${((index + 0.5) * place.bar).toFixed(1)} ${waiting(value)}`;
      pen = "L";
      return step;
    });
    const marks = shifts.map(({ ago }) => `M${(WIDTH - (ago / PART_MS) * place.bar).toFixed(1)} 0V${HEIGHT}`);
    [bars(place, delivered, 0), bars(place, failed, 0), line.join(""), marks.join("")].forEach((path, index) => attribute(paths[index], "d", path));
    attribute(legend.lastChild, "hidden", marks.length ? null : "");
    shifted = shiftsTold(shifts, (it) => live.now() - it.ago);
    sumUp();
  }

  // A part of the chart has the most of its seconds: how many are ready now the stream says.
  function sumUp() {
    if (!last || !live.state.head) return;
    if (live.unknown() && !live.rows.size) return put(told, live.unknown());
    const { delivered, failed, ready, known } = last;
    const now = live.state.head.jobs[1];
    const long = known.filter(Boolean).length * PART_MS;
    const since = known.every(Boolean) ? "" : `In the ${text.millis(long)} that the board has seen: `;
    if (live.unseen()) return put(told, live.unseen());
    put(told, !long ? "What was delivered is not known." : `${since}${text.jobs(sum(delivered))} delivered, ${text.full(sum(failed))} failed; ${text.full(Math.max(...ready, now))} ready at most, ${text.full(now)} now.${shifted}`);
    attribute(drawing, "aria-label", told.textContent);
  }

  return { update, stop: followed.stop };
}
