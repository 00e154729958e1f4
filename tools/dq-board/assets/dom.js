// Building elements. Text is only ever set as text, so nothing in a name or a payload is
// interpreted.

export function h(tag, about = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(about)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name in element && typeof value === "boolean") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, about = {}, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(about)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// Unchanged text is not touched: no flicker, no lost selection.
export function put(element, text, tone) {
  if (element.textContent !== text) element.textContent = text;
  if (tone !== undefined && element.dataset.tone !== tone) element.dataset.tone = tone;
}

// The name in a headline, of which there may be a thousand letters.
export function putTitle(element, name) {
  put(element, name);
  element.classList.toggle("long", name.length > 150);
  attribute(element, "title", name);
}

// A name that has no room is cut in the middle: its end tells it from others as its beginning does.
const [SHORT, TAIL] = [16, 12];
export function putName(link, name) {
  attribute(link, "title", name || null);
  if (link.textContent === name) return link;
  const letters = [...name];
  const cut = letters.length > SHORT;
  link.replaceChildren(...(cut ? [h("span", {}, letters.slice(0, -TAIL).join("")), h("span", {}, letters.slice(-TAIL).join(""))] : [name]));
  link.classList.toggle("cut", cut);
  // Two parts would be read as two words.
  attribute(link, "aria-label", cut ? name : null);
  return link;
}

export function attribute(element, name, value) {
  if (value === null || value === undefined) element.removeAttribute(name);
  else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

const focusIn = (element) => (element?.querySelector("button, a") ?? document.getElementById("main"))?.focus({ preventScroll: true });

// Other children, usually buttons: the focus stays among them.
export function replace(parent, ...children) {
  const isFocused = parent.contains(document.activeElement);
  parent.replaceChildren(...children);
  if (isFocused) focusIn(parent.querySelector("button, a") ? parent : parent.closest("tr"));
}

// Children by key; those that stay are reused, and keep the focus where they are moved. That of one that goes is the
// next one's.
export function list(parent, items, keyOf, make, update) {
  const keys = items.map((item) => String(keyOf(item)));
  const [focused, stay] = [document.activeElement, new Set(keys)];
  const place = [...parent.children].findIndex((child) => child.contains(focused));
  for (const child of [...parent.children]) if (!stay.has(child.dataset.key)) child.remove();
  const old = new Map([...parent.children].map((child) => [child.dataset.key, child]));
  let before = parent.firstChild;
  items.forEach((item, index) => {
    let child = old.get(keys[index]);
    if (!child) {
      child = make(item);
      child.dataset.key = keys[index];
    }
    if (child === before) before = before.nextSibling;
    else parent.insertBefore(child, before);
    update?.(child, item);
  });
  if (focused === document.activeElement) return;
  if (parent.contains(focused)) focused.focus({ preventScroll: true });
  else if (document.activeElement === document.body) focusIn(parent.children[Math.min(place, parent.children.length - 1)]);
}

// Scrolls a narrow strip sideways so that this element is in sight.
export function centre(strip, element) {
  const [all, one] = [strip.getBoundingClientRect(), element.getBoundingClientRect()];
  strip.scrollLeft += one.left + one.width / 2 - (all.left + all.width / 2);
}
