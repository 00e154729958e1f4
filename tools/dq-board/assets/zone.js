// In which zone the times of a page are, and a switch to UTC and back.
import { h } from "./dom.js";
import * as text from "./text.js";

// `again` makes the page anew, with the other zone.
export function zone(again, ...more) {
  const flip = h("button", { type: "button", class: "quiet", onclick: () => { text.switchZone(); again(); document.querySelector(".zone button")?.focus({ preventScroll: true }); } }, `Show ${text.otherZone()}`);
  return h("p", { class: "note zone" }, `Times are in ${text.zone}. `, ...more, text.otherZone() === text.zone ? "" : flip);
}
