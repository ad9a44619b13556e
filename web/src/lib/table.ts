// SPDX-License-Identifier: Apache-2.0
// A table that stays quick with thousands of rows: sorted by its headers, filtered, only the rows in sight are made.
// Arrow keys move between rows, Enter chooses one.

import { filtered, moved, nextOrder, sight, sorted, type Cell, type Order } from "./table-model";
import {
  arrange as arrangeChildren,
  children as fill,
  h,
  set,
  styled,
  text as setText,
  type Child,
} from "./dom";

export interface Column<R> {
  key: string;
  label: string;
  /** What a person reads when pointing at the header. */
  hint?: string;
  /** The value rows are sorted by. */
  value: (row: R) => Cell;
  /** What is shown; the value itself where left out. */
  show?: (row: R) => Child;
  /** Numbers stand right, largest first. */
  numeric?: boolean;
  /** CSS width; columns without one share the rest. */
  width?: string;
  /** The same on a narrow screen. */
  narrow?: string;
  /** Left out on a narrow screen. */
  wide?: boolean;
}

export interface TableOptions<R> {
  /** What the table is, for those who hear it. */
  caption: string;
  columns: readonly Column<R>[];
  /** Tells rows apart between updates. */
  id: (row: R) => string;
  order?: Order;
  onOrder?: (order: Order) => void;
  /** Shows a field to filter by; what a row is searched for is the text of its cells with text. */
  filter?: string;
  onFilter?: (words: string) => void;
  filterText?: (row: R) => string;
  empty?: string;
  onChoose?: (row: R) => void;
  /** The last line: one text for each column, of the rows that passed the filter. */
  totals?: (rows: readonly R[]) => readonly Child[];
  /** CSS height beyond which the table scrolls by itself. */
  maxHeight?: string;
  rowClass?: (row: R) => string | null;
  /** On a narrow screen a row has two lines. */
  roomy?: boolean;
}

export interface Table<R> {
  root: HTMLElement;
  rows(rows: readonly R[]): void;
  /** Marks a row as the one that is shown elsewhere. */
  mark(id: string | null): void;
  filter(words: string): void;
  empty(message: string): void;
}

const ROW = 32;
const ROOMY_ROW = 48;
const narrow = () => matchMedia("(max-width: 640px)").matches;

export function table<R>(options: TableOptions<R>): Table<R> {
  const { columns } = options;
  const rowHeight = () => (options.roomy && narrow() ? ROOMY_ROW : ROW);
  let all: readonly R[] = [];
  let shown: readonly R[] = [];
  let order: Order | null = options.order ?? null;
  let words = options.filter ?? "";
  let marked: string | null = null;
  let active = 0;
  let emptyText = options.empty ?? "Nothing here.";
  let painted: [number, number] = [0, 0];

  const headers = columns.map((column) =>
    h(
      "th",
      { scope: "col", class: classes(column) },
      h(
        "button",
        {
          type: "button",
          title: column.hint,
          onclick: () => {
            order = nextOrder(order, column.key, column.numeric ?? false);
            options.onOrder?.(order);
            arrange();
          },
        },
        column.label,
        h("span", { class: "sort", "aria-hidden": "true" }),
      ),
    ),
  );
  const above = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td"));
  const below = h("tr", { class: "spacer", "aria-hidden": "true" }, h("td"));
  const body = h("tbody", {});
  const foot = options.totals
    ? h("tr", {}, ...columns.map((column) => h("td", { class: classes(column) })))
    : null;
  const grid = h(
    "table",
    { class: options.roomy ? "data roomy" : "data" },
    h("caption", { class: "visually-hidden" }, options.caption),
    h("colgroup", {}, ...columns.map((column) => columnElement(column))),
    h("thead", {}, h("tr", {}, ...headers)),
    body,
    foot ? h("tfoot", {}, foot) : null,
  );
  const note = h("p", { class: "table-empty", hidden: true });
  const scroller = styled(
    h("div", { class: "table-scroll" }, grid, note),
    "max-height",
    options.maxHeight,
  );
  const search = h("input", {
    class: "input",
    type: "search",
    placeholder: "Filter",
    "aria-label": `Filter: ${options.caption}`,
    autocomplete: "off",
    spellcheck: "false",
  });
  const counted = h("span", { class: "muted num", role: "status" });
  search.value = words;
  search.addEventListener("input", () => {
    words = search.value;
    options.onFilter?.(words);
    scroller.scrollTop = 0;
    arrange();
  });
  const root = h(
    "div",
    { class: "grid-table" },
    options.filter === undefined ? null : h("div", { class: "table-tools" }, search, counted),
    scroller,
  );

  const made = new Map<string, { line: HTMLTableRowElement; cells: HTMLTableCellElement[] }>();

  const searched = (row: R): string =>
    options.filterText?.(row) ??
    columns
      .map((column) => column.value(row))
      .filter((value) => typeof value === "string")
      .join(" ");

  function arrange(): void {
    const passed = filtered(all, words, searched);
    const column = columns.find((one) => one.key === order?.key);
    shown = column && order ? sorted(passed, column.value, order.direction) : passed;
    headers.forEach((header, i) => {
      const mine = order !== null && columns[i]?.key === order.key;
      set(header, "aria-sort", mine ? order?.direction : null);
    });
    setText(counted, words === "" ? `${all.length}` : `${shown.length} of ${all.length}`);
    note.hidden = shown.length > 0;
    setText(
      note,
      all.length > 0 && words !== "" ? `None of the ${all.length} matches “${words}”.` : emptyText,
    );
    set(grid, "aria-rowcount", shown.length + 1);
    if (foot && options.totals) {
      const totals = options.totals(shown);
      foot.hidden = shown.length === 0;
      columns.forEach((_, i) => fill(foot.cells[i] as HTMLElement, totals[i]));
    }
    active = Math.min(active, Math.max(0, shown.length - 1));
    paint(true);
  }

  /** Makes the rows in sight; rows that were there keep their elements, and with them focus and selection. */
  function paint(fresh: boolean): void {
    const height = scroller.clientHeight || 600;
    const row = rowHeight();
    const [first, after] =
      shown.length <= 60 ? [0, shown.length] : sight(shown.length, scroller.scrollTop, height, row);
    if (!fresh && first === painted[0] && after === painted[1]) return;
    painted = [first, after];
    const wanted: HTMLElement[] = [];
    const kept = new Set<string>();
    for (let i = first; i < after; i += 1) {
      const one = shown[i] as R;
      const id = options.id(one);
      if (kept.has(id)) continue;
      kept.add(id);
      wanted.push(draw(id, one, i));
    }
    for (const [id, one] of made) {
      if (kept.has(id)) continue;
      one.line.remove();
      made.delete(id);
    }
    (above.cells[0] as HTMLElement).style.height = `${first * row}px`;
    (below.cells[0] as HTMLElement).style.height = `${(shown.length - after) * row}px`;
    arrangeChildren(body, [
      ...(first > 0 ? [above] : []),
      ...wanted,
      ...(after < shown.length ? [below] : []),
    ]);
  }

  function draw(id: string, row: R, index: number): HTMLElement {
    let one = made.get(id);
    if (!one) {
      const cells = columns.map((column) => h("td", { class: classes(column) }));
      one = { line: h("tr", { "data-id": id }, ...cells), cells };
      made.set(id, one);
    }
    const { line, cells } = one;
    columns.forEach((column, i) => {
      const cell = cells[i] as HTMLElement;
      const value = column.value(row);
      const content: Child = column.show
        ? column.show(row)
        : value === null || value === undefined
          ? "–"
          : String(value);
      if (content instanceof Node) {
        if (!(cell.childNodes.length === 1 && cell.firstChild?.isEqualNode(content)))
          fill(cell, content);
      } else
        setText(
          cell,
          content === false || content === null || content === undefined ? "" : String(content),
        );
    });
    line.className = [
      options.onChoose ? "choosable" : "",
      id === marked ? "marked" : "",
      options.rowClass?.(row) ?? "",
    ]
      .join(" ")
      .trim();
    set(line, "aria-rowindex", index + 2);
    set(line, "tabindex", options.onChoose ? (index === active ? 0 : -1) : null);
    set(line, "aria-current", id === marked ? "true" : null);
    return line;
  }

  const indexOf = (target: EventTarget | null): number => {
    const id =
      target instanceof Element ? target.closest("tr[data-id]")?.getAttribute("data-id") : null;
    return id === null || id === undefined ? -1 : shown.findIndex((row) => options.id(row) === id);
  };

  scroller.addEventListener("scroll", () => paint(false), { passive: true });
  if (options.onChoose) {
    body.addEventListener("click", (event) => {
      if (event.target instanceof Element && event.target.closest("a, button")) return;
      const row = shown[indexOf(event.target)];
      if (row === undefined || String(window.getSelection() ?? "") !== "") return;
      options.onChoose?.(row);
    });
    body.addEventListener("keydown", (event) => {
      const from = indexOf(event.target);
      if (from < 0) return;
      if (event.key === "Enter" && event.target instanceof HTMLTableRowElement) {
        const row = shown[from];
        if (row !== undefined) options.onChoose?.(row);
        event.preventDefault();
        return;
      }
      const to = moved(
        event.key,
        from,
        shown.length,
        Math.max(1, Math.floor(scroller.clientHeight / rowHeight()) - 2),
      );
      if (to === null) return;
      event.preventDefault();
      focus(to);
    });
  }

  function focus(index: number): void {
    active = index;
    const height = rowHeight();
    const top = index * height;
    const inSight = scroller.clientHeight - 2 * height;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top > scroller.scrollTop + inSight - height)
      scroller.scrollTop = top - inSight + height;
    paint(true);
    const row = shown[index];
    if (row !== undefined)
      made.get(options.id(row))?.line.focus({ preventScroll: shown.length > 60 });
  }

  arrange();
  return {
    root,
    rows(rows) {
      all = rows;
      arrange();
    },
    mark(id) {
      marked = id;
      paint(true);
    },
    filter(next) {
      words = next;
      search.value = next;
      arrange();
    },
    empty(message) {
      emptyText = message;
      arrange();
    },
  };
}

function classes<R>(column: Column<R>): string | null {
  return [column.numeric ? "num" : "", column.wide ? "wide" : ""].join(" ").trim() || null;
}

/** Its widths are for the style sheet to choose from. */
function columnElement<R>({ wide, width, narrow }: Column<R>): HTMLTableColElement {
  const element = styled(h("col", { class: wide ? "wide" : null }), "--width", width);
  return styled(element, "--narrow", narrow ?? width);
}
