// The hill of what is due, beside what was delivered, and how long so many workers need for it.
import { attribute, h, put, svg } from "./dom.js";
import * as live from "./live.js";
import { axis, drained } from "./scale.js";
import * as text from "./text.js";

export const ZOOMS = ["minute", "hour", "day", "week", "month", "year"];
const HEIGHT = 210;
const FOOT = 22;
const HEAD = 18;
// Between past and future there is room for what is due already.
const MIDDLE = 22;
// A column of jobs due already that is higher than that is cut: else nothing else could be seen.
const CUT = 4;
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
  const [unseen, lines, past, failed, ahead, due, capacity, end, middle, late, cursor, picked] = ["unseen", "lines", "past", "failed", "ahead", "due", "capacity", "end", "middle", "late", "cursor", "picked"].map((name) => svg("path", { class: name }));
  const labels = svg("g", { class: "labels" });
  drawing.append(unseen, lines, past, failed, ahead, due, capacity, end, middle, late, cursor, picked, labels);
  const meanings = [[past, "past", "delivered"], [failed, "failed", "failed"], [late, "late", "lateness, 99 %"], [due, "due", "already due"], [ahead, "ahead", "due"], [unseen, "unseen", "unknown"], [capacity, "capacity", "capacity of the workers"], [end, "end", "all done"]]
    .map(([path, name, meaning]) => [path, legend.appendChild(h("li", { class: name, hidden: true }, meaning))]);
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
    if (to - from > DRAWN) show(layout().when(from), layout().when(to));
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

  // Where the parts lie: those before now, then those to come, with room between them for what is due already.
  function layout() {
    const [before, coming] = [answer.past.length, answer.dues.length];
    const width = drawing.parentElement.clientWidth;
    const gap = before && coming ? MIDDLE : 0;
    const bar = (width - gap) / (before + coming);
    const half = before * bar;
    const right = half + gap;
    const part = (x) => (x < half ? x / bar : x < right ? before : before + (x - right) / bar);
    return { width, gap, bar, half, right, middle: half + gap / 2, part, when: (x) => answer.from + part(x) * answer.each };
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
    const { half, right, part } = layout();
    const last = answer.past.length + answer.dues.length - 1;
    pointed = x >= half && x < right ? null : Math.min(Math.max(Math.floor(part(x)), 0), last);
    draw();
  }

  function draw() {
    if (!answer || !drawing.parentElement.clientWidth) return;
    const { dues, each, from, now, past: before } = answer;
    const parts = before.length;
    const span = dues.length * each;
    const perMs = speed();
    const { width, gap, bar, half, right, middle: center, when } = layout();
    // What is due already stands at now, if that is shown.
    const ready = gap ? answer.due : 0;
    const others = Math.max(...dues, ...before.map((count, index) => count + (answer.failed?.[index] ?? 0)));
    const cut = !log && others > 0 && ready > CUT * others;
    const scaled = axis(cut ? others : Math.max(others, ready, 1), log);
    const floor = HEIGHT - FOOT;
    const level = (value) => (floor - scaled.at(value) * (floor - HEAD)).toFixed(1);
    attribute(scale, "aria-pressed", log);
    attribute(drawing, "viewBox", `0 0 ${width} ${HEIGHT}`);
    attribute(drawing, "height", HEIGHT);
    attribute(past, "d", bars(before, 0));
    attribute(failed, "d", answer.failed ? bars(answer.failed, 0) : "");
    attribute(ahead, "d", bars(dues, right));
    attribute(due, "d", ready ? column(ready) : "");
    attribute(middle, "d", gap ? `M${center} ${floor}V${floor + 5}` : "");
    attribute(lines, "d", [0, ...scaled.lines].map((value) => `M0 ${level(value)}H${width}`).join(""));
    attribute(late, "d", lateness());
    attribute(unseen, "d", answer.known.map((known, index) => (known || before[index] ? "" : `M${(index * bar).toFixed(1)} ${HEAD}h${(bar + 0.5).toFixed(1)}V${floor}h${(-bar - 0.5).toFixed(1)}z`)).join(""));
    const line = perMs * each;
    attribute(capacity, "d", dues.length && line <= scaled.top ? `M${right} ${level(line)}H${width}` : "");
    const result = drained(ready, dues, span, perMs);
    const x = right + (result.done / span) * (width - right);
    const total = ready + dues.reduce((sum, count) => sum + count, 0);
    attribute(end, "d", gap && total && result.done > 0 && result.done < span ? `M${x} ${HEAD}V${floor}` : "");
    attribute(cursor, "d", pointed === null ? "" : `M${(pointed < parts ? 0 : gap) + (pointed + 0.5) * bar} ${HEAD - 8}V${floor}`);
    attribute(picked, "d", drag ? `M${drag[0]} ${HEAD}H${drag[1]}V${floor}H${drag[0]}z` : "");
    label();
    for (const [path, meaning] of meanings) attribute(meaning, "hidden", path.getAttribute("d") ? null : "");
    put(readout, pointed === null ? summary(total) : told(pointed));
    put(verdict, gap ? sentence(total, result) : "");
    attribute(drawing, "aria-label", `${summary(total)} Arrow keys read out each part, plus and minus zoom, Shift and arrow keys move.`);

    function bars(values, left) {
      const gap = bar > 3 ? 1 : 0;
      return values.map((value, index) => (value > 0 ? `M${(left + index * bar).toFixed(1)} ${floor}V${Math.min(level(value), floor - 1.5)}h${(bar - gap).toFixed(1)}V${floor}z` : "")).join("");
    }

    // Cut, it ends in a tooth.
    function column(count) {
      const top = cut ? HEAD : Math.min(level(count), floor - 1.5);
      const [left, wide] = [half + 4, MIDDLE - 8];
      return `M${left} ${floor}V${top}${cut ? `l${wide / 2} 5l${wide / 2} -5` : `h${wide}`}V${floor}z`;
    }

    function lateness() {
      if (!answer.late) return "";
      const most = axis(Math.max(...answer.late.map((us) => us ?? 0), 1), true);
      let pen = "M";
      return answer.late.map((us, index) => {
        if (us === null) return (pen = "M"), "";
        const step = `${pen}${((index + 0.5) * bar).toFixed(1)} ${(floor - most.at(us) * (floor - HEAD)).toFixed(1)}${pen === "M" ? "h0.1" : ""}`;
        pen = "L";
        return step;
      }).join("");
    }

    function label() {
      const wide = width >= 500;
      // Between the ends and now, or each other.
      const places = [0, ...(gap ? [...(wide ? [half / 2] : []), center, ...(wide ? [(right + width) / 2] : [])] : [width / 2]), width];
      const texts = places.map((place) => {
        const anchor = place === 0 ? "start" : place === width ? "end" : "middle";
        const far = range && place === 0 && Math.abs(when(0) - now) > 86_400_000;
        const reading = place === center && gap ? "now" : far ? text.at(when(0)) : text.short(when(place), range ? reach() : span);
        return svg("text", { x: place, y: HEIGHT - 4, "text-anchor": anchor }, reading);
      });
      scaled.lines.forEach((value, index) => texts.push(svg("text", { x: 0, y: level(value) - 3, "text-anchor": "start" }, index === scaled.lines.length - 1 ? `${text.count(value)} ${value === 1 ? "job" : "jobs"} in ${text.millis(each)}` : text.count(value))));
      if (ready) texts.push(svg("text", { x: center, y: cut ? HEAD - 5 : Math.max(level(ready) - 4, HEAD - 5), "text-anchor": "middle", class: "strong" }, text.count(ready)));
      if (dues.length && line > scaled.top) texts.push(svg("text", { x: width, y: HEAD + 12, "text-anchor": "end", class: "beyond" }, `capacity ${text.count(Math.round(line))} ↑`));
      const wanted = texts.map((it) => it.outerHTML).join("");
      if (labels.innerHTML !== wanted) labels.replaceChildren(...texts);
    }

    function reach() {
      return ((parts + dues.length) * each) / 2;
    }

    function told(index) {
      const coming = index >= parts;
      const begin = from + index * each;
      const near = Math.min(range ? reach() : span, each * 20);
      const times = `${range ? text.at(begin) : text.short(begin, near)} to ${text.short(begin + each, near)}`;
      if (coming) return `${times}: ${text.jobs(dues[index - parts])} due, of ${text.count(Math.round(line))} that the workers can handle`;
      const died = answer.failed?.[index] ? `, ${text.full(answer.failed[index])} failed` : "";
      const lateBy = answer.late?.[index] ? `, 99 % at most ${text.micros(answer.late[index])} late` : "";
      return `${times}: ${text.jobs(Math.round(before[index]))} delivered${died}${lateBy}`;
    }

    function summary(all) {
      const waiting = ready ? `, ${text.jobs(ready)} already due` : "";
      const later = answer.later ? `, ${text.jobs(answer.later)} later` : "";
      const delivered = before.reduce((sum, count) => sum + count, 0);
      if (range) {
        const came = parts ? `${text.jobs(Math.round(delivered))} delivered` : "";
        const comes = dues.length ? `${text.jobs(all - ready)} due${waiting}${later}` : "";
        return `${text.at(from)} to ${text.at(from + (parts + dues.length) * each)}: ${[came, comes].filter(Boolean).join(", ")}.`;
      }
      const first = answer.known.indexOf(true);
      const begun = now - span + (first < 0 ? parts : first) * each;
      const since = answer.since > now - span && begun > answer.since - each - 60_000 ? `Since ${text.at(answer.since)}, when the board started` : `The last ${zoom}`;
      return `${since}: ${text.jobs(Math.round(delivered))} delivered. The next ${zoom}: ${text.jobs(all - ready)} due${waiting}${later}.`;
    }

    function sentence(all, { done, left, longest }) {
      if (!all) return "there is nothing to do.";
      const rateText = `${text.rate(perMs * 1000)} a second`;
      if (left > 0) return `${rateText}: not enough. This peak is cleared by ${text.at(now + done)}, ${text.millis(done - span)} after its end.`;
      const wait = longest < 1000 ? "no job waits longer than a second" : `the longest wait is ${text.millis(longest)}`;
      return `${rateText}: this peak is cleared by ${text.at(now + done)}; ${wait}.`;
    }
  }

  return {
    close() {
      follow.stop();
      watch.disconnect();
    },
  };
}
