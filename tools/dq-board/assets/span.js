// Which range of time the chart shows, and which part of it is pointed at. Nothing here touches the page.
export const ZOOMS = ["minute", "hour", "day", "week", "month", "year"];
const USUAL = "hour";
const NEAREST_MS = 10_000;
const FARTHEST_MS = 31_536_000_000;

export function span(about) {
  let zoom = ZOOMS.includes(about.zoom) ? about.zoom : USUAL;
  // A range that was selected in the chart: from when to when.
  let range = Number(about.to) > Number(about.from) ? [Number(about.from), Number(about.to)] : null;
  let pointed = null;

  const parts = (answer) => answer.past.length + answer.dues.length;
  // What is shown, or already asked for.
  const shown = (answer) => range ?? [answer.from, answer.from + parts(answer) * answer.each];

  function pick(name) {
    [zoom, range, pointed] = [name, null, null];
  }

  function show(from, to) {
    const long = Math.min(Math.max(to - from, NEAREST_MS), FARTHEST_MS);
    const middle = (from + to) / 2;
    range = [Math.round(middle - long / 2), Math.round(middle + long / 2)];
    pointed = null;
  }

  return {
    pick,
    show,
    usual: () => pick(zoom),
    // Zooms around what is pointed at.
    stretch(answer, by) {
      const [from, to] = shown(answer);
      const center = pointed === null ? (from + to) / 2 : answer.from + (pointed + 0.5) * answer.each;
      show(center - (center - from) * by, center + (to - center) * by);
    },
    shift(answer, by) {
      const [from, to] = shown(answer);
      show(from + (to - from) * by, to + (to - from) * by);
    },
    point(answer, part) {
      pointed = part === null ? null : Math.min(Math.max(Math.floor(part), 0), parts(answer) - 1);
    },
    walk(answer, by) {
      this.point(answer, (pointed ?? Math.max(answer.past.length, 1) - 1) + by);
    },
    every: () => (zoom === "minute" ? 1000 : 3000),
    question: () => (range ? `from=${range[0]}&to=${range[1]}` : `zoom=${zoom}`),
    address: () => ({ zoom: zoom === USUAL ? "" : zoom, from: range?.[0], to: range?.[1] }),
    looked: () => ({ zoom, range, pointed }),
  };
}
