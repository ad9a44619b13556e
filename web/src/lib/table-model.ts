// SPDX-License-Identifier: Apache-2.0
// What a table shows, without showing it: order, filter, and which rows are in sight.

export type Cell = string | number | boolean | null | undefined;
export type Direction = "ascending" | "descending";

export interface Order {
  key: string;
  direction: Direction;
}

const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

const unknown = (value: Cell): boolean =>
  value === null || value === undefined || (typeof value === "number" && Number.isNaN(value));

/** Numbers by size, text with its numbers by size (n2 before n10), what is not known always after the rest. */
function compare(a: Cell, b: Cell, direction: Direction): number {
  if (unknown(a) || unknown(b)) return Number(unknown(a)) - Number(unknown(b));
  const order =
    typeof a === "string" || typeof b === "string"
      ? collator.compare(String(a), String(b))
      : Number(a) - Number(b);
  return direction === "ascending" ? order : -order;
}

/** Rows in order; rows that are equal in it stay as they were. */
export function sorted<R>(rows: readonly R[], cell: (row: R) => Cell, direction: Direction): R[] {
  const keyed = rows.map((row) => [cell(row), row] as const);
  keyed.sort((a, b) => compare(a[0], b[0], direction));
  return keyed.map((one) => one[1]);
}

/** The direction a column gets when it is chosen: the other one, or its first, which is the largest first for numbers. */
export function nextOrder(now: Order | null, key: string, numeric: boolean): Order {
  if (now?.key === key)
    return { key, direction: now.direction === "ascending" ? "descending" : "ascending" };
  return { key, direction: numeric ? "descending" : "ascending" };
}

/** Rows in whose text all words of the filter are found, whatever their case. */
export function filtered<R>(
  rows: readonly R[],
  words: string,
  textOf: (row: R) => string,
): readonly R[] {
  const wanted = words
    .toLowerCase()
    .split(/\s+/)
    .filter((word) => word !== "");
  if (wanted.length === 0) return rows;
  return rows.filter((row) => {
    const text = textOf(row).toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

/** The rows in sight and some before and after them: `[first, after the last]`. */
export function sight(
  total: number,
  scrollTop: number,
  height: number,
  rowHeight: number,
  spare = 8,
): [number, number] {
  const first = Math.max(0, Math.floor(scrollTop / rowHeight) - spare);
  const after = Math.min(total, Math.ceil((scrollTop + height) / rowHeight) + spare);
  return [Math.min(first, Math.max(0, total - 1)), Math.max(after, 0)];
}

/** Where a key of movement leads from a row, null for other keys. */
export function moved(key: string, from: number, total: number, page: number): number | null {
  const to = {
    ArrowDown: from + 1,
    ArrowUp: from - 1,
    PageDown: from + page,
    PageUp: from - page,
    Home: 0,
    End: total - 1,
  }[key];
  return to === undefined || total === 0 ? null : Math.min(total - 1, Math.max(0, to));
}
