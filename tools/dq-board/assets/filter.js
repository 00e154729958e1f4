// Which jobs are selected: the form above a list, and the words of the address.
import { h } from "./dom.js";
import { decode } from "./table.js";
import { millis, telling } from "./text.js";

const PARTS = [["payload", "Payload contains"], ["group", "Group is"], ["label", "Label is"], ["reason", "Reason contains"], ["result", "Result contains"], ["awaits", "Waits for the signal"]];
const AGES = [["", "any age"], [60_000, "a minute"], [3_600_000, "an hour"], [86_400_000, "a day"], [604_800_000, "a week"]];
const WORDS = ["id", "payload", "group", "label", "reason", "result", "awaits", "kind", "older"];

// Whether the address selects only some of the jobs.
export function isFiltered(about) {
  return WORDS.some((word) => about[word]) || about.all === "1";
}

// The filter as the board takes it.
export function question(about, state) {
  const words = WORDS.filter((word) => about[word]).map((word) => `${word}=${about[word]}`);
  return [`state=${about.all === "1" ? "all" : state}`, ...words].join("&");
}

// The filter in words, for dialogs of actions.
export function told(about, state) {
  const said = [about.all === "1" ? "in all states" : state];
  const shown = (word) => `“${decode(about[word])}”`;
  if (about.id) said.push(`with ${shown("id")} in the id`);
  if (about.payload) said.push(`with ${shown("payload")} in the payload`);
  if (about.group) said.push(`of the group ${shown("group")}`);
  if (about.label) said.push(`with the label ${shown("label")}`);
  if (about.reason) said.push(`with ${shown("reason")} in the reason`);
  if (about.result) said.push(`with ${shown("result")} in the result`);
  if (about.awaits) said.push(`that wait for the signal ${shown("awaits")}`);
  if (about.kind) said.push(`for the reason “${telling(decode(about.kind))}”`);
  if (about.older) said.push(`for more than ${millis(Number(about.older))}`);
  return said.join(", ");
}

// `search` is always visible; the other fields are opened.
export function form(about, state, submit, ...others) {
  const search = h("input", { type: "search", placeholder: "Search by id", "aria-label": "Search by id", spellcheck: "false" });
  search.value = decode(about.id);
  const fields = PARTS.map(([word, label]) => {
    // What is pasted into a line loses its line ends, and words of a reason would stand as one.
    const isLines = word === "reason";
    const input = h(isLines ? "textarea" : "input", { type: isLines ? null : "text", rows: isLines ? 1 : null, maxlength: isLines ? 4096 : null, id: `filter-${word}`, spellcheck: "false", autocomplete: "off" });
    if (isLines) input.addEventListener("keydown", (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); input.form.requestSubmit(); } });
    input.value = decode(about[word]);
    return [word, input, h("div", { class: "field" }, h("label", { for: `filter-${word}` }, label), input)];
  });
  const older = h("select", { id: "filter-older" }, ...AGES.map(([ms, name]) => h("option", { value: ms }, name)));
  if (about.older && ![...older.options].some((option) => option.value === about.older)) older.append(h("option", { value: about.older }, millis(Number(about.older))));
  older.value = about.older ?? "";
  const all = h("input", { type: "checkbox", id: "filter-all" });
  all.checked = about.all === "1";
  const more = h("div", { class: "filters", id: "filters", hidden: !isFiltered({ ...about, id: "" }) },
    ...fields.map(([, , row]) => row),
    h("div", { class: "field" }, h("label", { for: "filter-older" }, "For longer than"), older),
    h("div", { class: "field check" }, all, h("label", { for: "filter-all" }, "In all states")));
  const open = h("button", { type: "button", "aria-controls": "filters", "aria-expanded": String(!more.hidden), onclick: () => {
    more.hidden = !more.hidden;
    open.setAttribute("aria-expanded", String(!more.hidden));
    if (!more.hidden) fields[0][1].focus();
  } }, "More filters");
  const words = () => {
    const said = { id: encodeURIComponent(search.value), older: older.value, all: all.checked ? "1" : "", kind: about.kind };
    for (const [word, input] of fields) said[word] = encodeURIComponent(input.value);
    return Object.entries(said).filter(([, value]) => value).map(([word, value]) => `&${word}=${value}`).join("");
  };
  return h("form", { class: "search", onsubmit: (event) => { event.preventDefault(); submit(words()); } },
    h("div", { class: "tools" }, search, h("button", { type: "submit" }, "Search"), open, ...others.filter(Boolean)), more);
}
