// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Interval } from "../../../../src/pages/profile/answers";
import {
  graphTop,
  heightsOf,
  intervalAt,
  layout,
  rowAt,
  visibleIntervals,
} from "../../../../src/pages/profile/time-line/lanes";
import { boxes, follow } from "../../../../src/pages/profile/calls/flame-model";

const at = (what: number, from: number, ns: number): Interval => [what, from, ns, 0, 0];

describe("lanes", () => {
  it("stand below each other, and are found again", () => {
    const processes = [1, 2, 3].map((process) => ({ process, name: `p${process}` }));
    const made = layout(1000, [1, 2], processes);
    expect(made.left + made.width).toBe(1000);
    expect(made.rows.map(({ kind, id }) => [kind, id])).toEqual([
      ["scheduler", 1],
      ["scheduler", 2],
      ["process", 1],
      ["process", 2],
      ["process", 3],
    ]);
    made.rows.forEach((row, i) => {
      const before = made.rows[i - 1];
      expect(row.y).toBeGreaterThanOrEqual(
        before === undefined ? made.graph.y + made.graph.height : before.y + before.height,
      );
      expect(rowAt(made.rows, row.y + row.height / 2)).toBe(row);
    });
    expect(made.height).toBeGreaterThan(made.rows.at(-1)?.y ?? 0);
    expect(rowAt(made.rows, 5)).toBeUndefined();
    expect(layout(300, [], []).left).toBeLessThan(made.left);
  });

  it("has the number of schedulers and all of the curve in the graph", () => {
    expect(graphTop([1, 2], [0, 1], 4)).toBe(4);
    expect(graphTop([4, 4], [30, 3], 4)).toBe(40);
    expect(graphTop([], [], null)).toBe(1);
    expect(graphTop([0.5], [1001], 2)).toBe(1200);
  });
});

describe("shares of a column", () => {
  const none = { running: 0, runnable: 0, gc: 0, waiting: 0 };

  it("are seen where there is anything, and stay within the lane", () => {
    expect(heightsOf(none, 20)).toEqual({ up: 0, more: 0, gc: 0, line: false });
    expect(heightsOf({ ...none, running: 0.001, waiting: 0.999 }, 20)).toEqual({
      up: 1,
      more: 0,
      gc: 0,
      line: true,
    });
    expect(heightsOf({ ...none, running: 0.999, runnable: 0.001 }, 20)).toMatchObject({
      up: 19,
      more: 1,
    });
    expect(heightsOf({ ...none, running: 0.5, runnable: 0.25, gc: 0.2 }, 20)).toMatchObject({
      up: 10,
      more: 5,
      gc: 4,
    });
  });
});

describe("intervals", () => {
  const list = [at(2, 0, 100), at(0, 100, 50), at(3, 110, 10), at(1, 150, 20)];

  it("are found by time, a collection before the run around it", () => {
    expect(intervalAt(list, 50)?.[0]).toBe(2);
    expect(intervalAt(list, 105)?.[0]).toBe(0);
    expect(intervalAt(list, 115)?.[0]).toBe(3);
    expect(intervalAt(list, 130)?.[0]).toBe(0);
    expect(intervalAt(list, 150)?.[0]).toBe(1);
    expect(intervalAt(list, 170)).toBeUndefined();
  });

  it("are drawn one by one where each has a pixel", () => {
    expect(visibleIntervals(list, 1, 0, 200)).toEqual(list);
    expect(visibleIntervals(list, 1, 120, 160)).toEqual(list.slice(1));
  });

  it("that are many in a pixel are few, and a run between waits is seen", () => {
    const many = Array.from({ length: 10_000 }, (_, i) => at(i % 2 === 0 ? 2 : 0, i, 1));
    const shown = visibleIntervals(many, 100, 0, 10_000);
    expect(shown.length).toBeLessThan(110);
    expect(shown.every(([what]) => what === 0)).toBe(true);
    expect(shown.reduce((sum, one) => sum + one[2], 0)).toBe(10_000);
    expect(many[0]).toEqual(at(2, 0, 1));
  });
});

describe("the flame graph", () => {
  const leaf = (name: string, ns: number) => ({ function: name, ns, below: [] });
  const tree = [{ function: "a", ns: 80, below: [leaf("b", 50), leaf("c", 20)] }, leaf("d", 20)];

  it("puts what is called below its caller", () => {
    expect(
      boxes(tree, 100).map(({ frame, x, width, depth }) => [frame.function, x, width, depth]),
    ).toEqual([
      ["a", 0, 0.8, 0],
      ["b", 0, 0.5, 1],
      ["c", 0.5, 0.2, 1],
      ["d", 0.8, 0.2, 0],
    ]);
    expect(boxes([leaf("x", 1)], 1e9)).toEqual([]);
  });

  it("follows a path as far as it leads", () => {
    expect(follow(tree, ["a", "c"]).map((frame) => frame.ns)).toEqual([80, 20]);
    expect(follow(tree, ["a", "z"]).map((frame) => frame.ns)).toEqual([80]);
    expect(follow(tree, [])).toEqual([]);
  });
});
