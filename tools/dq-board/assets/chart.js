// The elements of the chart, and its reactions to a mouse, a finger or a key.
import { attribute, h, put, svg } from "./dom.js";
import { HEIGHT } from "./shape.js";
import { ZOOMS } from "./span.js";

// From the back to the front, some with their text in the legend.
const LAYERS = ["unseen", "lines", "past", "failed", "ahead", "due", "capacity", "end", "middle", "late", "shift", "cursor", "picked"];
const MEANINGS = [["past", "delivered"], ["failed", "failed"], ["late", "lateness, 99 %"], ["shift", "workers came or went"], ["due", "already due"], ["ahead", "due"], ["unseen", "unknown"], ["capacity", "capacity of the workers"], ["end", "all done"]];
// A mouse that has moved so many pixels has selected a range.
const DRAWN = 8;
const KEYS = "Arrow keys read out each part, plus and minus zoom, Shift and arrow keys move.";

// `on` has the handlers: pick, shift, stretch, walk, log.
export function chart(on) {
  const zooms = ZOOMS.map((name) => h("button", { type: "button", onclick: () => on.pick(name) }, name));
  const steps = [["‹", "Earlier", () => on.shift(-0.5)], ["−", "Zoom out", () => on.stretch(2)], ["+", "Zoom in", () => on.stretch(0.5)], ["›", "Later", () => on.shift(0.5)]]
    .map(([sign, title, onclick]) => h("button", { type: "button", title, "aria-label": title, onclick }, sign));
  const scale = h("button", { type: "button", class: "scale", title: "A logarithmic scale", onclick: () => on.log() }, "log");
  const group = (label, ...buttons) => h("div", { class: "pick", role: "group", "aria-label": label }, ...buttons);
  const drawing = svg("svg", { class: "forecast", role: "img", tabindex: "0" });
  const paths = Object.fromEntries(LAYERS.map((name) => [name, svg("path", { class: name })]));
  const labels = svg("g", { class: "labels" });
  drawing.append(...Object.values(paths), labels);
  const legend = h("ul", { class: "legend" });
  const meanings = MEANINGS.map(([name, meaning]) => [name, legend.appendChild(h("li", { class: name, hidden: true }, meaning))]);
  const readout = h("p", { class: "readout" });
  // Only what keys point at is spoken: the summary changes each second.
  const spoken = h("p", { class: "hidden", role: "status" });
  const head = h("div", { class: "card-head" }, h("h2", {}, "Past and upcoming jobs"), h("div", { class: "picks" }, group("Scale", scale), group("Zoom", ...steps), group("Time range", ...zooms)));

  return {
    drawing,
    speak: () => put(spoken, readout.textContent),
    parts: [head, readout, spoken, h("div", { class: "drawing" }, drawing), legend],
    press(zoom, log) {
      zooms.forEach((button, index) => attribute(button, "aria-pressed", ZOOMS[index] === zoom));
      attribute(scale, "aria-pressed", log);
    },
    show(it, width) {
      attribute(drawing, "viewBox", `0 0 ${width} ${HEIGHT}`);
      attribute(drawing, "height", HEIGHT);
      for (const name of LAYERS) attribute(paths[name], "d", it.paths[name]);
      const texts = it.labels.map(([attributes, reading]) => svg("text", attributes, reading));
      if (labels.innerHTML !== texts.map((text) => text.outerHTML).join("")) labels.replaceChildren(...texts);
      for (const [name, entry] of meanings) attribute(entry, "hidden", it.paths[name] ? null : "");
      put(readout, it.readout);
      attribute(drawing, "aria-label", `${it.summary} ${KEYS}`);
    },
  };
}

// A mouse selects the range to zoom into; a finger scrolls. Besides the handlers of a chart, `on` has point, usual,
// show; places are pixels from the left. Returns the range that the mouse has selected so far.
export function pointer(drawing, on) {
  const at = (event) => event.clientX - drawing.getBoundingClientRect().left;
  let drag = null;
  drawing.addEventListener("pointerdown", (event) => {
    if (event.button || event.pointerType === "touch" || !on.isReady()) return;
    drag = [at(event), at(event)];
    drawing.setPointerCapture(event.pointerId);
  });
  drawing.addEventListener("pointermove", (event) => {
    if (drag) drag[1] = at(event);
    on.point(at(event));
  });
  drawing.addEventListener("pointerup", () => {
    const [from, to] = (drag ?? [0, 0]).sort((a, b) => a - b);
    drag = null;
    if (to - from > DRAWN) on.show(from, to);
    else on.draw();
  });
  drawing.addEventListener("pointercancel", () => { drag = null; on.draw(); });
  drawing.addEventListener("pointerleave", () => on.point(null));
  drawing.addEventListener("dblclick", () => on.usual());
  drawing.addEventListener("keydown", (event) => keyed(event, on));
  return () => drag;
}

function keyed(event, on) {
  if (!on.isReady() || event.ctrlKey || event.metaKey || event.altKey) return;
  const todo = {
    ArrowLeft: () => (event.shiftKey ? on.shift(-0.5) : on.walk(-1)),
    ArrowRight: () => (event.shiftKey ? on.shift(0.5) : on.walk(1)),
    "+": () => on.stretch(0.5),
    "-": () => on.stretch(2),
    Escape: () => on.usual(),
  }[event.key];
  if (!todo) return;
  event.preventDefault();
  todo();
}
