// Copying. On plain HTTP away from localhost, browsers have no navigator.clipboard.
import { h, put } from "./dom.js";

const SHOWN_MS = 6000;

// The two parts of a name that is cut would be two lines.
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  const cut = [...document.querySelectorAll(".cut")].filter((it) => selection.containsNode(it, true));
  if (!cut.length) return;
  const whole = (text, it) => text.replace([...it.children].map((part) => part.textContent).join("\n"), () => it.textContent);
  event.clipboardData.setData("text/plain", cut.reduce(whole, String(selection)));
  event.preventDefault();
});

export function copyButton(label, element, about = {}) {
  let timer;
  const button = h("button", { type: "button", ...about, onclick: async () => {
    const copied = await copy(element);
    put(button, copied ? "Copied" : "Selected: copy it with the keyboard");
    clearTimeout(timer);
    timer = setTimeout(() => put(button, label), SHOWN_MS);
  } }, label);
  return button;
}

async function copy(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}
