// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { CallGraph, Func } from "../../../../src/pages/profile/answers";
import {
  around,
  atLeast,
  lines,
  UNKNOWN_CALLER,
  within,
} from "../../../../src/pages/profile/calls/callers-model";
import { ofWhat } from "../../../../src/pages/profile/calls/whose";

const func = (n: number, name: string, all: number, whole: Func["whole"] = null): Func => ({
  function: n,
  name,
  calls: 1,
  own: 1,
  all,
  whole,
});

const graph: CallGraph = {
  functions: [func(1, "m:main/0", 100), func(2, "m:work/1", 80), func(3, "m:log/1", 5)],
  edges: [
    [0, 1, 1, 100],
    [1, 2, 4, 75],
    [9, 2, 1, 5],
    [2, 2, 7, 0],
    [2, 3, 2, 5],
  ],
  names: { "9": "n:rare/0" },
  functions_left: 1,
  edges_left: 0,
};

describe("who calls whom", () => {
  it("has a function between its callers and what it calls, the longest first", () => {
    expect(around(graph, 2, 0, 100)).toEqual({
      callers: [
        { function: 1, name: "m:main/0", calls: 4, ns: 75 },
        { function: 9, name: "n:rare/0", calls: 1, ns: 5 },
      ],
      callees: [{ function: 3, name: "m:log/1", calls: 2, ns: 5 }],
      itself: 7,
      hidden: { callers: 0, callees: 0 },
    });
    expect(around(graph, 1, 0, 100).callers[0]?.name).toBe(UNKNOWN_CALLER);
  });

  it("leaves out what has less of the time, and tells how many", () => {
    const { callers, callees, hidden } = around(graph, 2, 0.1, 100);
    expect(callers.map((one) => one.function)).toEqual([1]);
    expect(callees).toEqual([]);
    expect(hidden).toEqual({ callers: 1, callees: 1 });
    expect(atLeast(graph, 0.1, 100).map((one) => one.function)).toEqual([1, 2]);
    expect(atLeast(graph, 0, 0)).toHaveLength(3);
  });

  it("draws lines from each row, the thickest where most of the time is", () => {
    expect(lines(around(graph, 2, 0, 100).callers, 10)).toEqual([
      { y: 5, share: 1 },
      { y: 15, share: 5 / 75 },
    ]);
    expect(lines([], 10)).toEqual([]);
  });

  it("compares the part that is shown with the whole", () => {
    expect(within(func(1, "m:f/0", 30, { calls: 1, own: 1, all: 120 }))).toBe(0.25);
    expect(within(func(1, "m:f/0", 0, { calls: 1, own: 0, all: 0 }))).toBe(0);
    expect(within(func(1, "m:f/0", 30))).toBeNull();
  });

  it("says of what it is", () => {
    expect(ofWhat("whole", false, null)).toBe("in the whole recording");
    expect(ofWhat("part", true, "server")).toBe("of server alone, in the part that is shown");
    expect(ofWhat("whole", true, null)).toMatch(/too many events/);
  });
});
