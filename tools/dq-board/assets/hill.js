// The hill of what is due, beside what was delivered, and how long so many workers need for it.
import { attribute, h, put, svg } from "./dom.js";
import * as live from "./live.js";
import { HEIGHT, layout, shape } from "./shape.js";

export const ZOOMS = ["minute", "hour", "day", "week", "month", "year"];
// From the back to the front, and what the legend says of some.
const LAYERS = ["unseen", "lines", "past", "failed", "ahead", "due", "capacity", "end", "middle", "late", "cursor", "picked"];
const MEANINGS = [["past", "delivered"], ["failed", "failed"], ["late", "lateness, 99 %"], ["due", "already due"], ["ahead", "due"], ["unseen", "unknown"], ["capacity", "capacity of the workers"], ["end", "all done"]];
// A mouse that moves so far, in pixels, has drawn over something.
const DRAWN = 8;
const NEAREST_MS = 10_000;
const FARTHEST_MS = 31_536_000_000;
const OTHERWISE = { workers: 4, ms: 100 };

export function hill(parent, key, about, remember) {
  let zoom = ZOOMS.includes(about.zoom) ? about.zoom : "hour";
  // A range that was picked in the chart instead: from when to when.
  let range = Number(about.to) > Number(about.from) ? [Number(about.from), Number(about.to)] : null;
  let log = about.scale === "log";
  let answer = null;
  let pointed = null;
  // What a visitor typed counts instead of what was measured.
  const typed = { workers: number(about.workers), ms: number(about.ms) };
  const buttons = ZOOMS.map((name) => h("button", { type: "button", onclick: () => pick(name) }, name));
  const steps = [["‹", "Earlier", () => shift(-0.5)], ["−", "Zoom out", () => stretch(2)], ["+", "Zoom in", () => stretch(0.5)], ["›", "Later", () => shift(0.5)]]
    .map(([sign, title, onclick]) => h("button", { type: "button", title, "aria-label": title, onclick }, sign));
  const scale = h("button", { type: "button", class: "scale", title: "A logarithmic scale", onclick: () => { log = !log; keep(); draw(); } }, "log");
  const readout = h("p", { class: "readout" });
  const drawing = svg("svg", { class: "hill", role: "img", tabindex: "0" });
  const inputs = { workers: input("workers", "100000"), ms: input("each", "86400000", "any") };
  const measured = h("span", { class: "note" });
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const legend = h("ul", { class: "legend" });
  parent.append(h("section", { class: "card", "aria-label": "Past and upcoming jobs" },
    h("div", { class: "card-head" }, h("h2", {}, "Past and upcoming jobs"), h("div", { class: "picks" }, h("div", { class: "pick", role: "group", "aria-label": "Scale" }, scale), h("div", { class: "pick", role: "group", "aria-label": "Zoom" }, ...steps), h("div", { class: "pick", role: "group", "aria-label": "Time range" }, ...buttons))),
    readout, h("div", { class: "drawing" }, drawing), legend, wrong,
    h("div", { class: "ask" }, h("label", { for: "workers" }, "With"), inputs.workers, h("label", { for: "each" }, "workers at"), inputs.ms, h("span", {}, "ms per job"), measured, verdict)));
  const paths = Object.fromEntries(LAYERS.map((name) => [name, svg("path", { class: name })]));
  const labels = svg("g", { class: "labels" });
  drawing.append(...Object.values(paths), labels);
  const meanings = MEANINGS.map(([name, meaning]) => [name, legend.appendChild(h("li", { class: name, hidden: true }, meaning))]);
  const watch = new ResizeObserver(() => draw());
  watch.observe(drawing.parentElement);
  const at = (event) => event.clientX - drawing.getBoundingClientRect().left;
  // A mouse draws over what it wants to see closer; a finger scrolls.
  let drag = null;
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" || !answer) return;
    drag = [at(event), at(event)];
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (drag) drag[1] = at(event);
    point(at(event));
  });
  drawing.addEventListener("pointerup", () => {
    const [from, to] = (drag ?? [0, 0]).sort((a, b) => a - b);
    drag = null;
    if (to - from > DRAWN) show(places().when(from), places().when(to));
    else draw();
  });
  drawing.addEventListener("pointercancel", () => { drag = null; draw(); });
  drawing.addEventListener("dblclick", () => pick(zoom));
  drawing.addEventListener("pointerleave", () => { pointed = null; draw(); });
  drawing.addEventListener("keydown", (event) => {
    if (!answer || event.ctrlKey || event.metaKey || event.altKey) return;
    const todo = {
      ArrowLeft: () => (event.shiftKey ? shift(-0.5) : walk(-1)),
      ArrowRight: () => (event.shiftKey ? shift(0.5) : walk(1)),
      "+": () => stretch(0.5),
      "-": () => stretch(2),
      Escape: () => pick(zoom),
    }[event.key];
    if (!todo) return;
    event.preventDefault();
    todo();
  });
  let follow = ask();

  function number(word) {
    return Number(word) > 0 ? Number(word) : null;
  }

  function input(id, max, step = "1") {
    const name = id === "each" ? "ms" : id;
    return h("input", { type: "number", min: step === "any" ? "0.001" : "1", max, step, id, inputmode: "decimal", oninput: (event) => { typed[name] = number(event.target.value); keep(); draw(); } });
  }

  function keep() {
    remember({ zoom: zoom === "hour" ? "" : zoom, from: range?.[0], to: range?.[1], scale: log ? "log" : "", workers: typed.workers, ms: typed.ms });
  }

  function pick(name) {
    zoom = name;
    range = null;
    anew();
  }

  function anew() {
    pointed = null;
    keep();
    follow.stop();
    follow = ask();
  }

  function show(from, to) {
    const long = Math.min(Math.max(to - from, NEAREST_MS), FARTHEST_MS);
    const middle = (from + to) / 2;
    range = [Math.round(middle - long / 2), Math.round(middle + long / 2)];
    anew();
  }

  // What is shown, or is asked for already.
  function shown() {
    return range ?? [answer.from, answer.from + (answer.past.length + answer.dues.length) * answer.each];
  }

  function stretch(by) {
    if (!answer) return;
    const [from, to] = shown();
    // Around what is pointed at.
    const center = pointed === null ? (from + to) / 2 : answer.from + (pointed + 0.5) * answer.each;
    show(center - (center - from) * by, center + (to - center) * by);
  }

  function shift(by) {
    if (!answer) return;
    const [from, to] = shown();
    show(from + (to - from) * by, to + (to - from) * by);
  }

  function walk(by) {
    pointed = Math.min(Math.max((pointed ?? Math.max(answer.past.length, 1) - 1) + by, 0), answer.past.length + answer.dues.length - 1);
    draw();
  }

  function places() {
    return layout(answer, drawing.parentElement.clientWidth);
  }

  function ask() {
    buttons.forEach((button, index) => attribute(button, "aria-pressed", !range && ZOOMS[index] === zoom));
    return live.follow((signal) => live.look("hill", `queue=${key}&${range ? `from=${range[0]}&to=${range[1]}` : `zoom=${zoom}`}`, signal), (value, error) => {
      put(wrong, error ?? value.wrong ?? "");
      if (value) answer = value;
      draw();
    }, { every: zoom === "minute" ? 1000 : 3000 });
  }

  // What was typed, else measured, else assumed.
  function speed() {
    for (const name of ["workers", "ms"]) {
      const value = typed[name] ?? answer.measured?.[name] ?? OTHERWISE[name];
      if (document.activeElement !== inputs[name] && inputs[name].value !== String(value)) inputs[name].value = value;
    }
    const own = typed.workers !== null || typed.ms !== null;
    put(measured, own ? "" : answer.measured ? "(as measured)" : "(assumed: nothing was measured yet)");
    const of = (name) => typed[name] ?? answer.measured?.[name] ?? OTHERWISE[name];
    return of("workers") / of("ms");
  }

  function point(x) {
    if (!answer) return;
    const { half, right, part } = places();
    const last = answer.past.length + answer.dues.length - 1;
    pointed = x >= half && x < right ? null : Math.min(Math.max(Math.floor(part(x)), 0), last);
    draw();
  }

  function draw() {
    const width = drawing.parentElement.clientWidth;
    if (!answer || !width) return;
    const it = shape(answer, width, { zoom, range, log, pointed, drag }, speed());
    attribute(scale, "aria-pressed", log);
    attribute(drawing, "viewBox", `0 0 ${width} ${HEIGHT}`);
    attribute(drawing, "height", HEIGHT);
    for (const name of LAYERS) attribute(paths[name], "d", it.paths[name]);
    const texts = it.labels.map(([attributes, reading]) => svg("text", attributes, reading));
    if (labels.innerHTML !== texts.map((text) => text.outerHTML).join("")) labels.replaceChildren(...texts);
    for (const [name, entry] of meanings) attribute(entry, "hidden", it.paths[name] ? null : "");
    put(readout, it.readout);
    put(verdict, it.verdict);
    attribute(drawing, "aria-label", `${it.summary} Arrow keys read out each part, plus and minus zoom, Shift and arrow keys move.`);
  }

  return {
    close() {
      follow.stop();
      watch.disconnect();
    },
  };
}
