// SPDX-License-Identifier: Apache-2.0
// Marks of operations on groups on the time line: which are there, and how many where they are too many. Pure.
import { count } from "../../../lib/format";
import type { Node, Operation, Operations } from "../answers";
import { operationText } from "./groups-model";
import type { Row } from "./lanes";
import { nodeOf } from "../nodes-model";
import { lasting, type Range, span } from "../range";

/** The room of a mark. */
export const MARK_PX = 9;
/** The room of a count. */
export const COUNT_PX = 34;
/** How near to a mark the pointer is on it. */
const NEAR_PX = 5;

/** The operations in a part of the time, as the server told them. */
export interface Marks {
  part: Range;
  found: Operations;
}

/** More marks than this are counts. */
export const mostMarks = (width: number): number =>
  Math.max(10, Math.min(500, Math.floor(width / MARK_PX)));

const isOn = (row: Row, process: number, nodes: readonly Node[]): boolean =>
  row.kind === "process"
    ? row.id === process
    : row.kind === "groups" && (nodeOf(process, nodes)?.number ?? 0) === row.id;

/** Those of a row: of a node, or of a process. */
export const operationsOf = (
  rows: readonly Operation[],
  row: Row,
  nodes: readonly Node[],
): Operation[] => rows.filter(({ process }) => isOn(row, process, nodes));

export interface Bin {
  from: number;
  to: number;
  count: number;
}

/** Counts of a row in parts that have room for a number. */
export function binsOf(marks: Marks, row: Row, pixelNs: number): Bin[] {
  const { part, found } = marks;
  const width = span(part) / Math.max(1, found.parts);
  const each = Math.max(1, Math.ceil((COUNT_PX * pixelNs) / width));
  const bins = new Map<number, number>();
  for (const [cell, node, process, n] of found.cells) {
    const is = row.kind === "process" ? process === row.id : process === 0 && node === row.id;
    if (!is) continue;
    const bin = Math.floor(cell / each);
    bins.set(bin, (bins.get(bin) ?? 0) + n);
  }
  return [...bins]
    .sort(([a], [b]) => a - b)
    .map(([bin, n]) => ({
      from: part.from + bin * each * width,
      to: Math.min(part.to, part.from + (bin + 1) * each * width),
      count: n,
    }));
}

/** Operations at a time: those under way then, or near it. */
export const operationsAt = (
  rows: readonly Operation[],
  t: number,
  pixelNs: number,
): Operation[] => {
  const near = NEAR_PX * pixelNs;
  return rows.filter(({ at, took }) => t >= at - near && t <= at + (took ?? 0) + near);
};

/** What is on a row at a time, in words. */
export function marksText(
  marks: Marks | null,
  row: Row,
  nodes: readonly Node[],
  t: number,
  pixelNs: number,
): string {
  if (marks === null) return "";
  if (marks.found.cells.length > 0) {
    const bin = binsOf(marks, row, pixelNs).find(({ from, to }) => t >= from && t < to);
    if (bin === undefined) return "";
    return `${operations(bin.count)} on groups in ${lasting(Math.round(bin.to - bin.from))}: zoom in to see each`;
  }
  const [first, ...others] = operationsAt(operationsOf(marks.found.rows, row, nodes), t, pixelNs);
  if (first === undefined) return "";
  return (
    operationText(first) + (others.length > 0 ? `; and ${count(others.length)} more here` : "")
  );
}

const operations = (n: number): string => `${count(n)} ${n === 1 ? "operation" : "operations"}`;

/** What stands below the time line. */
export function foundText({ all, kept, count: n, rows }: Operations): string {
  const some =
    n > rows.length ? `${operations(n)} on groups in this part are shown as counts.` : "";
  const few = n > 0 && some === "" ? `${operations(n)} on groups in this part.` : "";
  const lost =
    all > kept
      ? ` The recording has ${count(all)}, of which the first ${count(kept)} are kept.`
      : "";
  return `${some}${few}${lost}`.trim();
}
