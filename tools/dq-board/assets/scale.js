// The scale of a chart, and how long a backlog takes: numbers only.

const STEPS = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

// The next round number.
function nice(value) {
  const decade = 10 ** Math.floor(Math.log10(value));
  // 3 * 0.1 is a little more than 0.3.
  return STEPS.map((step) => step * decade).find((it) => it >= value * (1 - 1e-9));
}

// The largest value of a chart, what share of its height a value takes, and where its lines are.
export function axis(most, log) {
  const top = log ? 10 ** Math.max(Math.ceil(Math.log10(Math.max(most, 2))), 1) : nice(Math.max(most, 1));
  const share = log ? (value) => Math.log10(1 + value) / Math.log10(1 + top) : (value) => value / top;
  const decades = [];
  for (let value = 1; value < top; value *= 10) decades.push(value);
  return { top, at: (value) => Math.min(Math.max(share(value), 0), 1), lines: log ? [...decades.filter((_, index) => (decades.length - index) % Math.ceil(decades.length / 4) === 0), top] : top > 1 ? [top / 2, top] : [top] };
}

// When the backlog is done: `due` jobs now, then those of each part, at so many per millisecond.
export function drained(due, parts, span, perMs, from = 0) {
  const width = span / parts.length;
  let left = due;
  let longest = due ? from + due / perMs : 0;
  let done = due > 0 ? Math.min(from + due / perMs, width) : 0;
  parts.forEach((count, index) => {
    left += count;
    const idle = Math.max(from - index * width, 0);
    const works = Math.max(width - idle, 0);
    if (count > 0 || left > 0) {
      longest = Math.max(longest, idle + left / perMs);
      done = index * width + Math.min(idle + left / perMs, width);
    }
    left = Math.max(left - perMs * works, 0);
  });
  return { done: left > 0 ? Math.max(span, from) + left / perMs : done, left, longest };
}
