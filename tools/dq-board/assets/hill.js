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
const OTHERWISE = { workers: 4, ms: 100 };

export function hill(parent, key, about, remember) {
  let zoom = ZOOMS.includes(about.zoom) ? about.zoom : "hour";
  let log = about.scale === "log";
  let answer = null;
  let pointed = null;
  // What a visitor typed counts instead of what was measured.
  const typed = { workers: number(about.workers), ms: number(about.ms) };
  const buttons = ZOOMS.map((name) => h("button", { type: "button", onclick: () => pick(name) }, name));
  const scale = h("button", { type: "button", class: "scale", title: "A logarithmic scale", onclick: () => { log = !log; keep(); draw(); } }, "log");
  const readout = h("p", { class: "readout" });
  const drawing = svg("svg", { class: "hill", role: "img", tabindex: "0" });
  const inputs = { workers: input("workers", "100000"), ms: input("each", "86400000", "any") };
  const measured = h("span", { class: "note" });
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  const wrong = h("p", { class: "wrong", role: "alert" });
  const legend = h("ul", { class: "legend" });
  parent.append(h("section", { class: "card", "aria-label": "Past and upcoming jobs" },
    h("div", { class: "card-head" }, h("h2", {}, "Past and upcoming jobs"), h("div", { class: "picks" }, h("div", { class: "pick", role: "group", "aria-label": "Scale" }, scale), h("div", { class: "pick", role: "group", "aria-label": "Time range" }, ...buttons))),
    readout, h("div", { class: "drawing" }, drawing), legend, wrong,
    h("div", { class: "ask" }, h("label", { for: "workers" }, "With"), inputs.workers, h("label", { for: "each" }, "workers of"), inputs.ms, h("span", {}, "ms a job"), measured, verdict)));
  const [unseen, lines, past, failed, ahead, due, capacity, end, middle, late, cursor] = ["unseen", "lines", "past", "failed", "ahead", "due", "capacity", "end", "middle", "late", "cursor"].map((name) => svg("path", { class: name }));
  const labels = svg("g", { class: "labels" });
  drawing.append(unseen, lines, past, failed, ahead, due, capacity, end, middle, late, cursor, labels);
  const meanings = [[past, "past", "delivered"], [failed, "failed", "failed"], [late, "late", "lateness, 99 %"], [due, "due", "due already"], [ahead, "ahead", "due"], [unseen, "unseen", "not known"], [capacity, "capacity", "capacity of the workers"], [end, "end", "all done"]]
    .map(([path, name, meaning]) => [path, legend.appendChild(h("li", { class: name, hidden: true }, meaning))]);
  const watch = new ResizeObserver(() => draw());
  watch.observe(drawing.parentElement);
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
  let follow = ask();

  function number(word) {
    return Number(word) > 0 ? Number(word) : null;
  }

  function input(id, max, step = "1") {
    const name = id === "each" ? "ms" : id;
    return h("input", { type: "number", min: step === "any" ? "0.001" : "1", max, step, id, inputmode: "decimal", oninput: (event) => { typed[name] = number(event.target.value); keep(); draw(); } });
  }

  function keep() {
    remember({ zoom: zoom === "hour" ? "" : zoom, scale: log ? "log" : "", workers: typed.workers, ms: typed.ms });
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
    const parts = answer.dues.length;
    const half = (drawing.clientWidth - MIDDLE) / 2;
    const index = x < half ? (x / half) * parts : parts + ((x - half - MIDDLE) / half) * parts;
    pointed = x >= half && x < half + MIDDLE ? null : Math.min(Math.max(Math.floor(index), 0), 2 * parts - 1);
    draw();
  }

  function draw() {
    const width = drawing.parentElement.clientWidth;
    if (!answer || !width) return;
    const { dues, span, now, past: before } = answer;
    const parts = dues.length;
    const each = span / parts;
    const perMs = speed();
    const half = (width - MIDDLE) / 2;
    const right = half + MIDDLE;
    const bar = half / parts;
    const others = Math.max(...dues, ...before.map((count, index) => count + (answer.failed?.[index] ?? 0)));
    const cut = !log && others > 0 && answer.due > CUT * others;
    const scaled = axis(cut ? others : Math.max(others, answer.due, 1), log);
    const floor = HEIGHT - FOOT;
    const level = (value) => (floor - scaled.at(value) * (floor - HEAD)).toFixed(1);
    attribute(scale, "aria-pressed", log);
    attribute(drawing, "viewBox", `0 0 ${width} ${HEIGHT}`);
    attribute(drawing, "height", HEIGHT);
    attribute(past, "d", bars(before, 0));
    attribute(failed, "d", answer.failed ? bars(answer.failed, 0) : "");
    attribute(ahead, "d", bars(dues, right));
    attribute(due, "d", answer.due ? column(answer.due) : "");
    attribute(middle, "d", `M${width / 2} ${floor}V${floor + 5}`);
    attribute(lines, "d", [0, ...scaled.lines].map((value) => `M0 ${level(value)}H${width}`).join(""));
    attribute(late, "d", lateness());
    attribute(unseen, "d", answer.known.map((known, index) => (known || before[index] ? "" : `M${(index * bar).toFixed(1)} ${HEAD}h${(bar + 0.5).toFixed(1)}V${floor}h${(-bar - 0.5).toFixed(1)}z`)).join(""));
    const line = perMs * each;
    attribute(capacity, "d", line <= scaled.top ? `M${right} ${level(line)}H${width}` : "");
    const result = drained(answer.due, dues, span, perMs);
    const x = right + (result.done / span) * half;
    const total = answer.due + dues.reduce((sum, count) => sum + count, 0);
    attribute(end, "d", total && result.done > 0 && result.done < span ? `M${x} ${HEAD}V${floor}` : "");
    attribute(cursor, "d", pointed === null ? "" : `M${(pointed < parts ? 0 : MIDDLE) + (pointed + 0.5) * bar} ${HEAD - 8}V${floor}`);
    label();
    for (const [path, meaning] of meanings) attribute(meaning, "hidden", path.getAttribute("d") ? null : "");
    put(readout, pointed === null ? summary(total) : told(pointed));
    put(verdict, sentence(total, result));
    attribute(drawing, "aria-label", `${summary(total)} Arrow keys read out each part.`);

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
      const shares = width < 500 ? [-1, 0, 1] : [-1, -0.5, 0, 0.5, 1];
      const texts = shares.map((share) => {
        const anchor = share === -1 ? "start" : share === 1 ? "end" : "middle";
        const shown = share === 0 ? "now" : text.short(now + share * span, span);
        return svg("text", { x: width / 2 + share * (share === 0 ? 0 : half + MIDDLE / 2), y: HEIGHT - 4, "text-anchor": anchor }, shown);
      });
      scaled.lines.forEach((value, index) => texts.push(svg("text", { x: 0, y: level(value) - 3, "text-anchor": "start" }, index === scaled.lines.length - 1 ? `${text.count(value)} ${value === 1 ? "job" : "jobs"} in ${text.millis(each)}` : text.count(value))));
      if (answer.due) texts.push(svg("text", { x: width / 2, y: cut ? HEAD - 5 : Math.max(level(answer.due) - 4, HEAD - 5), "text-anchor": "middle", class: "strong" }, text.count(answer.due)));
      if (line > scaled.top) texts.push(svg("text", { x: width, y: HEAD + 12, "text-anchor": "end", class: "beyond" }, `capacity ${text.count(Math.round(line))} ↑`));
      const wanted = texts.map((it) => it.outerHTML).join("");
      if (labels.innerHTML !== wanted) labels.replaceChildren(...texts);
    }

    function told(index) {
      const coming = index >= parts;
      const from = now + (index - parts) * each;
      const when = `${text.short(from, Math.min(span, each * 20))} to ${text.short(from + each, Math.min(span, each * 20))}`;
      if (coming) return `${when}: ${text.jobs(dues[index - parts])} due, of ${text.count(Math.round(line))} that the workers can do`;
      const died = answer.failed?.[index] ? `, ${text.full(answer.failed[index])} failed` : "";
      const lateBy = answer.late?.[index] ? `, 99 % not later than ${text.micros(answer.late[index])}` : "";
      return `${when}: ${text.jobs(Math.round(before[index]))} delivered${died}${lateBy}`;
    }

    function summary(all) {
      const ready = answer.due ? `, ${text.jobs(answer.due)} already due` : "";
      const later = answer.later ? `, ${text.jobs(answer.later)} later` : "";
      const delivered = before.reduce((sum, count) => sum + count, 0);
      const first = answer.known.indexOf(true);
      const begun = now - span + (first < 0 ? parts : first) * each;
      const since = answer.since > now - span && begun > answer.since - each - 60_000 ? `Since ${text.at(answer.since)}, when the board started` : `The last ${zoom}`;
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

  return {
    close() {
      follow.stop();
      watch.disconnect();
    },
  };
}
