// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Node, Operation, Operations } from "../../../../src/pages/profile/answers";
import { layout, type Row } from "../../../../src/pages/profile/time-line/lanes";
import {
  binsOf,
  foundText,
  type Marks,
  marksText,
  mostMarks,
  operationsAt,
  operationsOf,
} from "../../../../src/pages/profile/time-line/marks-model";
import { aNode, anOperation } from "./recorded";

const operation = (process: number, at: number, took: number | null): Operation =>
  anOperation({ process, by: `<0.${process}.0>`, at, took, ok: took === null ? null : true });
const found = (more: Partial<Operations>): Operations => ({
  all: 2,
  kept: 2,
  count: 2,
  parts: 160,
  rows: [],
  cells: [],
  ...more,
});
const node = (number: number, first: number, last: number): Node =>
  aNode({ number, node: `n${number}@h`, first, last });
const row = (kind: Row["kind"], id: number): Row => ({ kind, id, label: "", y: 0, height: 14 });

describe("rows of group operations", () => {
  const kinds = (nodes: Node[], has: boolean) =>
    layout(1000, [], [{ process: 1, name: "p" }], false, nodes, has).rows.map(
      ({ kind, id }) => `${kind} ${id}`,
    );

  it("is one, or one below each node", () => {
    expect(kinds([], true)).toEqual(["groups 0", "process 1"]);
    expect(kinds([], false)).toEqual(["process 1"]);
    expect(kinds([node(1, 1, 5), node(2, 6, 9)], true)).toEqual([
      "node 1",
      "groups 1",
      "process 1",
      "node 2",
      "groups 2",
    ]);
  });

  it("has the operations of its node, and lanes those of their process", () => {
    const rows = [operation(1, 0, 1), operation(7, 0, 1)];
    const nodes = [node(1, 1, 5), node(2, 6, 9)];
    const of = (one: Row, some: Node[]) => operationsOf(rows, one, some).map((o) => o.process);
    expect(of(row("groups", 0), [])).toEqual([1, 7]);
    expect(of(row("groups", 2), nodes)).toEqual([7]);
    expect(of(row("process", 1), nodes)).toEqual([1]);
    expect(of(row("scheduler", 1), nodes)).toEqual([]);
  });
});

describe("pointing at a mark", () => {
  const rows = [operation(1, 1000, 500), operation(2, 1400, null)];

  it("finds what goes on then or is near", () => {
    const at = (t: number) => operationsAt(rows, t, 10).map((o) => o.process);
    expect(at(900)).toEqual([]);
    expect(at(960)).toEqual([1]);
    expect(at(1400)).toEqual([1, 2]);
    expect(at(1540)).toEqual([1]);
    expect(at(1560)).toEqual([]);
  });

  it("says it", () => {
    const marks: Marks = { part: { from: 0, to: 2000 }, found: found({ rows }) };
    const text = (t: number) => marksText(marks, row("groups", 0), [], t, 10);
    expect(text(1000)).toBe("leave(shop) by <0.1.0>, took 500 ns, ok");
    expect(text(1400)).toMatch(/; and 1 more here$/);
    expect(text(10)).toBe("");
    expect(marksText(null, row("groups", 0), [], 10, 10)).toBe("");
  });
});

describe("counts where there are too many", () => {
  const marks: Marks = {
    part: { from: 0, to: 16_000 },
    found: found({
      count: 900,
      cells: [
        [0, 0, 0, 100],
        [0, 0, 5, 60],
        [1, 0, 0, 200],
        [159, 0, 0, 600],
      ],
    }),
  };

  it("are of parts with room for a number, and all are counted", () => {
    for (const pixelNs of [1, 10, 16, 40, 1000]) {
      const bins = binsOf(marks, row("groups", 0), pixelNs);
      expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(900);
      for (const { from, to } of bins)
        expect(to - from >= Math.min(34 * pixelNs, 16_000) || to === 16_000).toBe(true);
    }
    expect(binsOf(marks, row("process", 5), 10)).toEqual([{ from: 0, to: 400, count: 60 }]);
    expect(binsOf(marks, row("groups", 2), 10)).toEqual([]);
  });

  it("are said, too", () => {
    expect(marksText(marks, row("groups", 0), [], 50, 10)).toMatch(/^300 operations on groups in/);
    expect(marksText(marks, row("groups", 0), [], 8000, 10)).toBe("");
  });

  it("are bounded by the width", () => {
    expect(mostMarks(0)).toBe(10);
    expect(mostMarks(900)).toBe(100);
    expect(mostMarks(100_000)).toBe(500);
  });
});

describe("what stands below", () => {
  it("tells how many there are, and what is missing", () => {
    expect(foundText(found({ count: 0 }))).toBe("");
    expect(foundText(found({ count: 1, rows: [operation(1, 0, 1)] }))).toBe(
      "1 operation on groups in this part.",
    );
    expect(foundText(found({ count: 900, rows: [] }))).toMatch(/shown as counts/);
    expect(foundText(found({ count: 0, all: 60_000, kept: 50_000 }))).toMatch(/first 50,000/);
  });
});
