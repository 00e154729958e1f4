// JSON, coloured and folded, without losing a digit: tokens stay as they were written.
import { h } from "./dom.js";
import { visible } from "./text.js";

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;
// Larger or deeper JSON is shown as plain text: thousands of elements would slow the page down.
const TOKENS = 4000;
const DEEPEST = 40;
// A list or an object with more entries is folded at first, unless it is the outermost.
const OPEN = 60;

// None if it is too large. Its text is that of `indented` in text.js.
export function tree(text) {
  const tokens = text.match(TOKEN) ?? [];
  if (tokens.length > TOKENS) return null;
  let place = 0;

  function value(depth) {
    const token = tokens[place++];
    if (token === "{" || token === "[") return depth < DEEPEST ? container(token, depth) : null;
    const kind = token[0] === '"' ? "text" : /^[-\d]/.test(token) ? "number" : "word";
    return h("span", { class: `json-${kind}` }, visible(token));
  }

  function container(open, depth) {
    const close = open === "{" ? "}" : "]";
    const inside = h("span", { class: "inside" });
    const line = `\n${"  ".repeat(depth + 1)}`;
    let count = 0;
    while (tokens[place] !== close) {
      if (tokens[place] === ",") {
        place += 1;
        inside.append(",");
      }
      inside.append(line);
      if (open === "{") {
        inside.append(h("span", { class: "json-name" }, visible(tokens[place])), ": ");
        place += 2;
      }
      const child = value(depth + 1);
      if (!child) return null;
      inside.append(child);
      count += 1;
    }
    place += 1;
    if (count === 0) return h("span", {}, open + close);
    inside.append(`\n${"  ".repeat(depth)}`);
    return folding(open, close, inside, count, depth > 0 && count > OPEN);
  }
  return value(0);
}

function folding(open, close, inside, count, folded) {
  const what = open === "{" ? "fields" : "items";
  const whole = h("span", { class: "fold", "data-count": `${count} ${what}` });
  const button = h("button", { type: "button", class: "folder", "aria-label": `Fold ${count} ${what}`, onclick: () => set(!whole.classList.contains("folded")) });
  const set = (it) => {
    whole.classList.toggle("folded", it);
    button.setAttribute("aria-expanded", String(!it));
  };
  whole.append(button, open, inside, close);
  set(folded);
  return whole;
}
