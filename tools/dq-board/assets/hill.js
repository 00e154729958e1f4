// The hill of what is due, beside what was delivered, and how long so many workers need for it.
import { attribute, h, put, svg } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

export const ZOOMS = ["minute", "hour", "day", "week", "month", "year"];
const HEIGHT = 190;
const FOOT = 22;
const HEAD = 16;

// When the backlog is done: `due` jobs now, then those of each part, at so many a millisecond.
export function drained(due, parts, span, perMs) {
  const width = span / parts.length;
  let left = due;
  let longest = due / perMs;
  let done = due > 0 ? Math.min(due / perMs, width) : 0;
  parts.forEach((count, index) => {
    left += count;
    if (count > 0 || left > 0) {
      longest = Math.max(longest, left / perMs);
      done = index * width + Math.min(left / perMs, width);
    }
    left = Math.max(left - perMs * width, 0);
  });
  return { done: left > 0 ? span + left / perMs : done, left, longest };
}

export function hill(parent, key, about, remember) {
  let zoom = ZOOMS.includes(about.zoom) ? about.zoom : "hour";
  let answer = null;
  const buttons = ZOOMS.map((name) => h("button", { type: "button", onclick: () => pick(name) }, name));
  const readout = h("p", { class: "readout" });
  const drawing = svg("svg", { class: "hill", role: "img", tabindex: "0" });
  const workers = h("input", { type: "number", min: "1", max: "100000", value: number(about.workers, 4), id: "workers", inputmode: "numeric" });
  const ms = h("input", { type: "number", min: "1", max: "86400000", value: number(about.ms, 100), id: "each", inputmode: "numeric" });
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  for (const input of [workers, ms]) input.addEventListener("input", () => { keep(); draw(); });
  const legend = h("ul", { class: "legend" });
  const figure = h("section", { class: "card", "aria-label": "Past and upcoming jobs" },
    h("div", { class: "card-head" }, h("h2", {}, "Past and upcoming jobs"), h("div", { class: "pick", role: "group", "aria-label": "Time range" }, ...buttons)),
    readout, h("div", { class: "drawing" }, drawing), legend, wrong,
    h("div", { class: "ask" }, h("label", { for: "workers" }, "With"), workers, h("label", { for: "each" }, "workers of"), ms, h("span", {}, "ms a job:"), verdict));
  parent.append(figure);
  const unseen = svg("path", { class: "unseen" });
  const past = svg("path", { class: "past" });
  const ahead = svg("path", { class: "ahead" });
  const lines = svg("path", { class: "lines" });
  const middle = svg("path", { class: "middle" });
  const capacity = svg("path", { class: "capacity" });
  const end = svg("path", { class: "end" });
  const cursor = svg("path", { class: "cursor" });
  const labels = svg("g", { class: "labels" });
  drawing.append(unseen, lines, past, ahead, capacity, end, middle, cursor, labels);
  const meanings = [[past, "past", "delivered"], [ahead, "ahead", "due"], [unseen, "unseen", "before the board started"], [capacity, "capacity", "capacity of the workers"], [end, "end", "all done"]]
    .map(([path, name, meaning]) => [path, legend.appendChild(h("li", { class: name, hidden: true }, meaning))]);
  let follow = ask();
  const watch = new ResizeObserver(() => draw());
  watch.observe(drawing.parentElement);
  let pointed = null;
  drawing.addEventListener("pointermove", (event) => point(event.clientX - drawing.getBoundingClientRect().left));
  drawing.addEventListener("pointerleave", () => { pointed = null; draw(); });
  drawing.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by || !answer) return;
    event.preventDefault();
    const parts = answer.dues.length;
    pointed = Math.min(Math.max((pointed ?? parts - 1) + by, 0), 2 * parts - 1);
    draw();
  });

  function number(word, otherwise) {
    return Number(word) > 0 ? Math.floor(Number(word)) : otherwise;
  }

  function keep() {
    remember({ zoom: zoom === "hour" ? "" : zoom, workers: workers.value === "4" ? "" : workers.value, ms: ms.value === "100" ? "" : ms.value });
  }

  function pick(name) {
    zoom = name;
    keep();
    follow.stop();
    follow = ask();
  }

  function ask() {
    buttons.forEach((button, index) => attribute(button, "aria-pressed", ZOOMS[index] === zoom));
    return live.follow((signal) => live.look("hill", `queue=${key}&zoom=${zoom}`, signal), (value, error) => {
      put(wrong, error ?? "");
      if (value) answer = value;
      draw();
    }, { every: zoom === "minute" ? 1000 : 3000 });
  }

  function point(x) {
    if (!answer) return;
    const parts = answer.dues.length;
    pointed = Math.min(Math.max(Math.floor((x / drawing.clientWidth) * 2 * parts), 0), 2 * parts - 1);
    draw();
  }

  function draw() {
    const width = drawing.parentElement.clientWidth;
    if (!answer || !width) return;
    const { dues, span, now } = answer;
    const before = answer.past;
    const parts = dues.length;
    const each = span / parts;
    const perMs = Math.max(Number(workers.value) || 1, 1) / Math.max(Number(ms.value) || 1, 1);
    // Deliveries of the last minute are rates, all else are counts.
    const most = Math.max(...dues, ...before, 1);
    const scale = (HEIGHT - HEAD - FOOT) / nice(most);
    const bar = width / (2 * parts);
    attribute(drawing, "viewBox", `0 0 ${width} ${HEIGHT}`);
    attribute(drawing, "height", HEIGHT);
    attribute(past, "d", bars(before, 0));
    attribute(ahead, "d", bars(dues, width / 2));
    attribute(middle, "d", `M${width / 2} ${HEAD - 8}V${HEIGHT - FOOT}`);
    attribute(lines, "d", [0, 0.5, 1].map((share) => `M0 ${level(nice(most) * share)}H${width}`).join(""));
    const blind = Math.max(answer.since - (now - span), 0) / span;
    attribute(unseen, "d", blind > 0 ? `M0 ${HEAD}H${(Math.min(blind, 1) * width) / 2}V${HEIGHT - FOOT}H0z` : "");
    const line = perMs * each;
    attribute(capacity, "d", line <= nice(most) ? `M${width / 2} ${level(line)}H${width}` : "");
    const result = drained(answer.due, dues, span, perMs);
    const x = width / 2 + (result.done / span) * (width / 2);
    const total = answer.due + dues.reduce((sum, count) => sum + count, 0);
    attribute(end, "d", total && result.done > 0 && result.done < span ? `M${x} ${HEAD}V${HEIGHT - FOOT}` : "");
    attribute(cursor, "d", pointed === null ? "" : `M${(pointed + 0.5) * bar} ${HEAD - 8}V${HEIGHT - FOOT}`);
    label(width, most, span, now);
    for (const [path, meaning] of meanings) attribute(meaning, "hidden", path.getAttribute("d") ? null : "");
    put(readout, pointed === null ? summary(total, result) : told(pointed));
    put(verdict, sentence(total, result));
    attribute(drawing, "aria-label", `${summary(total, result)} Arrow keys read out each part.`);

    function level(value) {
      return (HEIGHT - FOOT - value * scale).toFixed(1);
    }

    function bars(values, left) {
      const gap = bar > 3 ? 1 : 0;
      return values.map((value, index) => (value > 0 ? `M${(left + index * bar).toFixed(1)} ${HEIGHT - FOOT}V${Math.min(level(value), HEIGHT - FOOT - 1.5)}h${(bar - gap).toFixed(1)}V${HEIGHT - FOOT}z` : "")).join("");
    }

    function told(index) {
      const coming = index >= parts;
      const from = now + (index - parts) * each;
      const count = coming ? dues[index - parts] : before[index];
      const when = `${text.short(from, Math.min(span, each * 20))} to ${text.short(from + each, Math.min(span, each * 20))}`;
      return `${when}: ${text.jobs(Math.round(count))} ${coming ? "due" : "delivered"}`;
    }

    function summary(all) {
      const ready = answer.due ? `, ${text.jobs(answer.due)} already due` : "";
      const later = answer.later ? `, ${text.jobs(answer.later)} later` : "";
      const delivered = before.reduce((sum, count) => sum + count, 0);
      const since = answer.since > now - span ? `Since ${text.at(answer.since)}, when the board started` : `The last ${zoom}`;
      return `${since}: ${text.jobs(Math.round(delivered))} delivered. The next ${zoom}: ${text.jobs(all - answer.due)} due${ready}${later}.`;
    }

    function sentence(all, { done, left, longest }) {
      if (!all) return "there is nothing to do.";
      const rateText = `${text.rate(perMs * 1000)} a second`;
      if (left > 0) return `${rateText}: not enough. This peak is worked off by ${text.at(now + done)}, ${text.millis(done - span)} after its end.`;
      const wait = longest < 1000 ? "no job waits for a second" : `the longest wait is ${text.millis(longest)}`;
      return `${rateText}: this peak is worked off by ${text.at(now + done)}; ${wait}.`;
    }
  }

  function label(width, most, span, now) {
    const shares = width < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1];
    const texts = shares.map((share) => {
      const anchor = share === 0 ? "start" : share === 1 ? "end" : "middle";
      const shown = share === 0.5 ? "now" : text.short(now + (share - 0.5) * 2 * span, span);
      return svg("text", { x: share * width, y: HEIGHT - 6, "text-anchor": anchor }, shown);
    });
    texts.push(svg("text", { x: 0, y: HEAD - 4, "text-anchor": "start" }, `${text.jobs(nice(most)).replace(/[\d,]+/, text.count(nice(most)))} in ${text.millis(span / answer.dues.length)}`));
    const wanted = texts.map((it) => it.outerHTML).join("");
    if (labels.innerHTML !== wanted) labels.replaceChildren(...texts);
  }

  return {
    close() {
      follow.stop();
      watch.disconnect();
    },
  };
}

// The next 1, 2 or 5 of a decade.
function nice(value) {
  const decade = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * decade).find((it) => it >= value);
}
