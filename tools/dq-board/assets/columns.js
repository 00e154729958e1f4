// Tables whose columns sort, all in one way: a title sorts by its column, once more turns that round, and a third time
// leads back to the server's order. Which one it is stands in the address.
import { attribute, h, list, put } from "./dom.js";
import { follow, look, unknown } from "./live.js";

const letters = new Intl.Collator("en", { numeric: true });
const compare = (a, b) => (typeof a === "string" ? letters.compare(a, b) : a - b);

// Of a column: `title`; `by`, what an item is sorted by (null comes last; without `by` it does not sort); `up`: the
// smallest comes first, else the largest. `make` makes its head; `usual` is a column by which it is sorted otherwise.
export function sorting(columns, env, make, changed, { word = "sort", usual = null } = {}) {
  const name = ({ id, title }) => id ?? title.toLowerCase().replaceAll(/\W+/g, "-");
  const [, turned, of] = /^(-?)(.*)$/.exec(env.about[word] ?? "");
  let by = columns.find((column) => column.by && name(column) === of);
  let isTurned = Boolean(turned);
  const heads = columns.map((column) => make(column, column.by ? h("button", { type: "button", class: "sort", onclick: () => turn(column) }, column.title) : h("span", {}, column.title)));
  tell();

  function turn(column) {
    [by, isTurned] = by !== column ? [column, false] : isTurned ? [null, false] : [column, true];
    env.keep({ [word]: by && `${isTurned ? "-" : ""}${name(by)}` });
    tell();
    changed();
  }

  function tell() {
    columns.forEach((column, index) => attribute(heads[index], "aria-sort", column !== by ? (column.by ? "none" : null) : Boolean(by.up) === isTurned ? "descending" : "ascending"));
  }

  // Items that are alike stay in their order.
  function order(items) {
    const column = by ?? usual;
    if (!column) return items;
    const values = new Map(items.map((item) => [item, column.by(item) ?? null]));
    const way = Boolean(column.up) === isTurned ? -1 : 1;
    return [...items].sort((one, other) => {
      const [a, b] = [values.get(one), values.get(other)];
      return a === null || b === null ? (a === null) - (b === null) : way * compare(a, b);
    });
  }

  return { heads, order, isBy: (column) => column === by };
}

// A table of the items that it is given. What a column has in a line: `make` once, `show` (a text, its tone, its title)
// and `fill` each time. `group`: items of which this is the same stand together, and only the first of them `isFirst`.
export function sheet(label, columns, env, { key = ({ id }) => id, letter = "c", kind = "", choice = null, group = null, word, usual, turned = () => {} } = {}) {
  let items = [];
  let numbered = 0;
  const classes = columns.map((column) => column.class ?? `${letter}${numbered++}`);
  const head = (column, inside) => h("th", { role: "columnheader", scope: "col", class: classes[columns.indexOf(column)] }, inside);
  const sorted = sorting(columns, env, head, () => { show(items); turned(); }, { word, usual });
  // Where there is no room each line is a block, and some readers would no longer know that it is a table.
  const body = h("tbody", { role: "rowgroup" });
  const table = h("table", { role: "table", class: `jobs ${kind}`, "aria-label": label, hidden: true }, h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, choice?.head, ...sorted.heads)), body);
  choice?.of(table);

  function line(item) {
    return h("tr", { role: "row", "data-line": "" }, choice?.box(item), ...columns.map((column, index) => h("td", { role: "cell", class: classes[index], "data-title": column.title }, column.make?.(item))));
  }

  function fill(row, item) {
    const cells = [...row.cells].slice(choice ? 1 : 0);
    columns.forEach((column, index) => {
      const cell = cells[index];
      column.fill?.(cell, item);
      if (column.show) {
        const [said, tone, title] = [column.show(item)].flat();
        put(cell, said, tone ?? "");
        attribute(cell, "title", title);
      }
      cell.classList.toggle("none", cell.textContent === "–");
    });
  }

  function show(now) {
    items = now;
    const order = sorted.order(items);
    const lines = group ? order.map((item, index) => ({ ...item, isFirst: !index || group(item) !== group(order[index - 1]) })) : order;
    list(body, lines, key, line, fill);
    choice?.keep(order);
    table.hidden = !items.length;
  }

  return { table, show, again: () => show(items) };
}

// A page's sheet, with what stands around it.
export function page(label, columns, env, { none, bars = [], ...about }) {
  const [note, wrong] = [h("p", { class: "note" }), h("p", { class: "wrong", role: "alert" })];
  const empty = h("div", { class: "empty", hidden: true });
  const further = h("div", { class: "further" });
  let leads = null;
  const own = sheet(label, columns, env, { ...about, turned: () => leads && links(leads) });

  // Pairs of a text and the words of the address that it changes, or null where it leads nowhere.
  function links(all) {
    leads = all;
    list(further, all.filter(Boolean), ([said]) => said, ([said, words]) => (words ? h("a", { class: "button" }, said) : h("p", { class: "note" }, said)), (link, [, words]) => words && attribute(link, "href", env.at(words)));
  }

  // Asks a view again and again. Its last answer is shown when it comes, and on `again`.
  function asked(view, question, show, about) {
    let last = null;
    const again = () => last && show(last);
    const followed = follow((signal) => look(view, question, signal), (answer, error) => {
      put(wrong, error ?? "");
      last = answer ?? last;
      again();
    }, about);
    return { ...followed, again };
  }

  return {
    ...own,
    asked,
    links,
    note,
    wrong,
    empty,
    further,
    parts: [note, wrong, ...bars, own.table, empty, further],
    show(items, otherwise = none) {
      own.show(items);
      empty.hidden = items.length > 0;
      put(empty, unknown() || otherwise);
    },
  };
}
