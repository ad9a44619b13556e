// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  boxLabel,
  clampColumns,
  columnAt,
  fromQuery,
  longestQueues,
  memoryOf,
  moved,
  partOf,
  problems,
  rangeText,
  rowsText,
  shareText,
} from "../../../src/pages/samples/model";

describe("shares", () => {
  it("are told with their interval", () => {
    expect(shareText({ share: 0.123, low: 0.0961, high: 0.154 })).toBe("12 % (9.6 to 15)");
    expect(shareText({ share: 0, low: 0, high: 0.0004 })).toBe("0 % (0 to < 0.1)");
    expect(shareText({ share: 1, low: 0.97, high: 1 })).toBe("100 % (97 to 100)");
  });
  it("say how many rows there are", () => {
    expect(rowsText(500, 812, "kinds")).toBe("The first 500 of 812 kinds.");
    expect(rowsText(3, 3, "kinds")).toBe("3 kinds.");
  });
});

describe("a part of the time", () => {
  it("is never empty, and within the whole", () => {
    expect(clampColumns(-3, -1, 10)).toEqual({ first: 0, after: 1 });
    expect(clampColumns(12, 20, 10)).toEqual({ first: 9, after: 10 });
    expect(clampColumns(4, 4, 10)).toEqual({ first: 4, after: 5 });
    expect(clampColumns(0, 5, 0)).toEqual({ first: 0, after: 1 });
  });
  it("moves by its length, which stays", () => {
    expect(moved({ first: 2, after: 5 }, 1, 10)).toEqual({ first: 5, after: 8 });
    expect(moved({ first: 5, after: 8 }, 1, 10)).toEqual({ first: 7, after: 10 });
    expect(moved({ first: 2, after: 5 }, -1, 10)).toEqual({ first: 0, after: 3 });
    expect(moved({ first: 0, after: 10 }, 1, 10)).toEqual({ first: 0, after: 10 });
  });
  it("comes out of the address as it went in", () => {
    for (const count of [1, 3, 7, 60])
      for (let first = 0; first < count; first += 1)
        for (let after = first + 1; after <= count; after += 1) {
          const part = partOf({ first, after }, count, 10_000_000_007);
          const query: Record<string, string> =
            part === null ? {} : { from: String(part.from), to: String(part.to) };
          expect(fromQuery(query, count, 10_000_000_007)).toEqual({ first, after });
        }
  });
  it("is the whole where the address is wrong", () => {
    for (const query of [{}, { from: "x", to: "3" }, { from: "9", to: "3" }, { from: "1" }])
      expect(fromQuery(query as Record<string, string>, 10, 100)).toEqual({ first: 0, after: 10 });
    expect(partOf({ first: 0, after: 10 }, 10, 100)).toBeNull();
    expect(columnAt(3, 10, 105)).toBe(31);
  });
  it("is told", () => {
    expect(rangeText(null, 2e9)).toBe("The whole time, 2 s");
    expect(rangeText({ from: 5e8, to: 1e9 }, 2e9)).toBe("500 ms to 1 s of 2 s");
  });
});

describe("what is missing", () => {
  const node = {
    node: "a@h",
    otp: "29",
    duration: 1,
    began: 0,
    schedulers: 2,
    looks: 1,
    rounds: 2,
    own_share: 0,
    counted_share: 0.9,
    processes: 1,
    kinds: 1,
  };
  it("is told, with the node where there are several", () => {
    expect(problems({ duration: 1, nodes: [node] })).toEqual([]);
    expect(problems({ duration: 1, nodes: [{ ...node, rounds: 1 }] })[0]).toMatch(
      /^Not every process was looked at/,
    );
    expect(problems({ duration: 1, nodes: [node, { ...node, counted_share: 0.2 }] })[0]).toMatch(
      /^20 % of the reductions of a@h/,
    );
  });
});

describe("what nodes tell of themselves", () => {
  it("has memory by parts that are all of it", () => {
    const column = {
      at: 0,
      run_queue: 1,
      most_run_queue: 2,
      processes: 3,
      memory: { total: 100, processes: 40, binary: 30, ets: 10 },
    };
    const parts = memoryOf([column, { ...column, memory: null }]);
    expect(parts.map(({ values }) => values)).toEqual([
      [40, null],
      [30, null],
      [10, null],
      [20, null],
    ]);
  });
  it("has the longest run queues, in their order", () => {
    const queues = [
      [1, 1],
      [0, null],
      [5, 5],
      [2, 0],
      [0, 3],
    ];
    expect(longestQueues(queues, 3).map(({ label }) => label)).toEqual([
      "queue 1",
      "queue 3",
      "dirty, input and output",
    ]);
    expect(longestQueues(queues, 9).map(({ key }) => key)).toEqual(["0", "1", "2", "3", "4"]);
    expect(longestQueues([], 3)).toEqual([]);
  });
  it("names a mailbox, with its node where there are several", () => {
    const box = { node: "a@h", name: "server", mean: [], most: null };
    expect([boxLabel(box, false), boxLabel(box, true)]).toEqual(["server", "server at a@h"]);
  });
});
