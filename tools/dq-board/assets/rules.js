// Adds a recurring job, or gives one another rule, and shows its next runs during typing.
import { h, put } from "./dom.js";
import * as live from "./live.js";
import * as text from "./text.js";

const ZONES = () => (Intl.supportedValuesOf ? ["UTC", ...Intl.supportedValuesOf("timeZone")] : ["UTC"]);
const MS = { seconds: 1000, minutes: 60_000, hours: 3_600_000, days: 86_400_000 };

// The fields of a rule: how it recurs, and what they mean.
function fields(rule) {
  const cron = h("input", { type: "text", id: "rule-cron", spellcheck: "false", autocomplete: "off", placeholder: "0 9 * * MON-FRI" });
  const zone = h("input", { type: "text", id: "rule-zone", list: "rule-zones", spellcheck: "false", autocomplete: "off" });
  const every = h("input", { type: "number", id: "rule-every", min: "1" });
  const unit = h("select", { "aria-label": "Unit" }, ...Object.entries(MS).map(([name, ms]) => h("option", { value: ms }, name)));
  const kind = h("select", { id: "rule-kind" }, h("option", { value: "cron" }, "cron expression"), h("option", { value: "every" }, "fixed interval"));
  const runs = h("ol", { class: "runs", "aria-live": "polite", "aria-label": "Next runs" });
  const wrong = h("p", { class: "wrong" });
  const field = (id, label, ...inputs) => h("div", { class: "field" }, h("label", { for: id }, label), h("div", { class: "inputs" }, ...inputs));
  const rows = { cron: [field("rule-cron", "Cron expression", cron), field("rule-zone", "Time zone", zone)], every: [field("rule-every", "Every", every, unit)] };
  zone.value = "UTC";
  every.value = "15";
  unit.value = "60000";
  const known = /^cron (.*) (\S+)$/.exec(rule?.text ?? "");
  if (known) [cron.value, zone.value] = [known[1], known[2]];
  else if (rule) kind.value = "every";
  const list = h("datalist", { id: "rule-zones" }, ...ZONES().map((name) => h("option", { value: name })));
  let fits = false;
  let turn = 0;

  const value = () => (kind.value === "cron" ? { cron: cron.value.trim(), tz: zone.value.trim() } : { every: Math.round(Number(every.value) * Number(unit.value)) });

  async function show(changed) {
    const own = (turn += 1);
    for (const [name, all] of Object.entries(rows)) for (const row of all) row.hidden = name !== kind.value;
    const said = value();
    const words = kind.value === "cron" ? `cron=${encodeURIComponent(said.cron)}&tz=${encodeURIComponent(said.tz)}` : `every=${said.every}`;
    const answer = await live.get(`api/next?${words}`).catch((error) => ({ runs: [], wrong: error.message }));
    if (own !== turn) return;
    runs.replaceChildren(...answer.runs.map((instant) => h("li", {}, `${text.at(instant)} (${text.until(instant, live.now())})`)));
    fits = answer.runs.length > 0;
    put(wrong, fits || (kind.value === "cron" && !said.cron) ? "" : answer.wrong ?? "This rule never runs.");
    await changed();
  }

  return {
    row: h("div", {}, field("rule-kind", "When", kind), ...rows.cron, ...rows.every, list, h("p", { class: "note" }, `Next runs, in ${text.zone}:`), runs, wrong),
    input: cron,
    fits: () => fits,
    value,
    show,
  };
}

export const add = (row, done) => ({
  title: `Add a recurring job to ${row.name}?`,
  sentence: "It comes again by its rule until it is cancelled, and never overlaps itself.",
  fields: [{ name: "id", label: "Id", needed: true, encode: true }, { name: "payload", label: "Payload", kind: "text", value: "{}" }],
  made: [fields(null)],
  yes: "Add it",
  what: { act: "add-rule", queue: row.key },
  done,
});

export const edit = (queue, job, done) => ({
  title: "Change the rule?",
  sentence: `${job.name} keeps its payload and options. Its next run is the first of the new rule.`,
  made: [fields(job.rule)],
  yes: "Change it",
  what: { act: "set-rule", queue, id: job.id },
  done,
});

