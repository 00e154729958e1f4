// A chart of the jobs to come, beside what was delivered, and how long the workers need for it.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import { chart, pointer } from "./chart.js";
import { layout, shape } from "./shape.js";
import { span } from "./span.js";
import * as text from "./text.js";

// `limits`: the queue's settings and its pause, as far as they are known.
export function forecast(parent, key, about, remember, limits) {
  const time = span(about);
  let log = about.scale === "log";
  let answer = null;
  let follow = null;
  // Another range was asked for, which is spoken once it is there.
  let isNews = false;
  const wide = () => drawing.parentElement.clientWidth;
  const on = {
    isReady: () => Boolean(answer),
    draw,
    // In pixels from the left, or null.
    point: (x) => answer && redrawn(() => time.point(answer, x === null ? null : partAt(x))),
    walk: (by) => {
      if (!answer) return;
      redrawn(() => time.walk(answer, by));
      it.speak();
    },
    pick: (name) => asked(() => time.pick(name)),
    usual: () => asked(time.usual),
    show: (from, to) => asked(() => time.show(places().when(from), places().when(to))),
    stretch: (by) => answer && asked(() => time.stretch(answer, by)),
    shift: (by) => answer && asked(() => time.shift(answer, by)),
    log: () => redrawn(() => { log = !log; keep(); }),
  };
  const it = chart(on);
  const { drawing } = it;
  const wrong = h("p", { class: "wrong", role: "alert" });
  const speed = workers(about, () => redrawn(keep));
  parent.append(h("section", { class: "card", "aria-label": "Past and upcoming jobs" }, ...it.parts, wrong, speed.element));
  const watch = new ResizeObserver(draw);
  watch.observe(drawing.parentElement);
  const drawn = pointer(drawing, on);
  ask();

  function places() {
    return layout(answer, wide());
  }

  // In the gap between past and future there is nothing to point at.
  function partAt(x) {
    const { half, right, part } = places();
    return x >= half && x < right ? null : part(x);
  }

  function keep() {
    remember({ ...time.address(), scale: log ? "log" : "", ...speed.typed });
  }

  function redrawn(change) {
    change();
    draw();
  }

  function asked(change) {
    change();
    keep();
    follow.stop();
    isNews = true;
    ask();
  }

  function ask() {
    pressed();
    follow = live.follow((signal) => live.look("forecast", `queue=${key}&${time.question()}`, signal), (value, error) => {
      put(wrong, error ?? value.wrong ?? "");
      if (value) answer = value;
      draw();
      if (value && isNews) it.speak();
      isNews = false;
    }, { every: time.every() });
  }

  function pressed() {
    const { zoom, range } = time.looked();
    it.press(range ? null : zoom, log);
  }

  function draw() {
    const width = wide();
    if (!answer || !width) return;
    const shaped = shape(answer, width, { ...time.looked(), log, drag: drawn() }, speed.limited(answer, limits()));
    pressed();
    it.show(shaped, width);
    speed.tell(shaped.verdict);
  }

  return {
    // The limits have changed.
    draw,
    close() {
      follow.stop();
      watch.disconnect();
    },
  };
}

// What the limits of the queue and of its groups leave of so many workers, and what holds it now.
function limited(workers, ms, { set, hold, groups, row }) {
  const most = [[workers / ms, ""]];
  const number = text.full;
  if (set?.maxreserved) most.push([set.maxreserved / ms, `, as MAXRESERVED ${number(set.maxreserved)} allows`]);
  if (set?.rate[0]) most.push([set.rate[0] / set.rate[1], `, as RATE ${set.rate.map(number).join(" in ")} ms allows`]);
  if (groups?.reserved) most.push([groups.reserved[0] / ms, `, at best, as ${groups.reserved[1]} allows`]);
  if (groups?.rate) most.push([groups.rate[0], `, at best, as ${groups.rate[1]} allows`]);
  const [perMs, why] = most.reduce((least, it) => (it[0] < least[0] ? it : least));
  const paused = row.paused < 0 ? Infinity : row.paused ? Math.max(row.paused - live.now(), 0) : 0;
  const opens = hold?.until ? Math.max(hold.until - live.now(), 0) : 0;
  return { perMs, why, hold, from: Math.max(paused, opens) };
}

const OTHERWISE = { workers: 4, ms: 100 };
const number = (word) => (Number(word) > 0 ? Number(word) : null);

// The speed of the workers: as typed, else measured, else assumed.
function workers(about, changed) {
  const typed = { workers: number(about.workers), ms: number(about.ms) };
  const input = (id, name, max, step, min) => h("input", { type: "number", min, max, step, id, inputmode: "decimal", oninput: (event) => { typed[name] = number(event.target.value); changed(); } });
  const inputs = { workers: input("workers", "workers", "100000", "1", "1"), ms: input("each", "ms", "86400000", "any", "0.001") };
  const measured = h("span", { class: "note" });
  const verdict = h("p", { class: "verdict", "aria-live": "polite" });
  return {
    typed,
    element: h("div", { class: "ask" }, h("label", { for: "workers" }, "With"), inputs.workers, h("label", { for: "each" }, "workers at"), inputs.ms, h("span", {}, "ms per job"), measured, verdict),
    tell: (words) => put(verdict, words),
    limited(answer, limits) {
      const of = (name) => typed[name] ?? answer.measured?.[name] ?? OTHERWISE[name];
      for (const [name, element] of Object.entries(inputs)) {
        if (document.activeElement !== element && element.value !== String(of(name))) element.value = of(name);
      }
      const own = typed.workers !== null || typed.ms !== null;
      put(measured, own ? "" : answer.measured ? "(as measured)" : answer.unseen ? "(assumed: no job was seen reserved, as with NOACK)" : "(assumed: nothing was measured yet)");
      // Whoever types a number asks what would be.
      const hold = own && limits.hold?.idle ? null : limits.hold;
      return { ...limited(of("workers"), of("ms"), { ...limits, hold }), isAsked: own || answer.asked !== false, isKnown: own || Boolean(answer.measured), unseen: live.unseen(), held: limits.groups?.held, row: limits.row };
    },
  };
}
