// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type {
  Arrows,
  Branch,
  Path,
  Segment,
  StepKind,
} from "../../../../src/pages/profile/answers";
import { told } from "../../../../src/pages/profile/time-line/arrows";
import {
  evidenceRows,
  kindText,
  sentence,
} from "../../../../src/pages/profile/report/findings-model";
import {
  joined,
  longest,
  numbersOf,
  segmentAt,
  stepText,
} from "../../../../src/pages/profile/time-line/path-model";
import { around, partOf } from "../../../../src/pages/profile/range";
import {
  ancestors,
  inSight,
  shutAtFirst,
} from "../../../../src/pages/profile/processes/tree-model";

const step = (kind: StepKind, from: number, to: number, more: Partial<Segment> = {}): Segment => ({
  kind,
  process: "p1",
  number: 1,
  from,
  to,
  function: null,
  sender: null,
  sender_number: null,
  ...more,
});

describe("the critical path", () => {
  const steps = [
    step("running", 0, 100, { function: "m:f/1" }),
    step("message", 100, 110, { sender: "p2", sender_number: 2 }),
    step("waiting", 110, 1110),
  ];

  it("is found by time, and told", () => {
    expect(segmentAt(steps, 100)?.kind).toBe("message");
    expect(segmentAt(steps, 1110)).toBeUndefined();
    expect(steps.map(stepText)).toEqual([
      "p1 runs in m:f/1 for 100 ns",
      "a message from p2 is on its way to p1 for 10 ns",
      "p1 waits for 1 µs",
    ]);
  });

  it("has its longest steps in their order", () => {
    const path = { segments: steps, processes: [{ number: 7 }, { number: 3 }] } as unknown as Path;
    expect(longest(path, 2).map(({ kind }) => kind)).toEqual(["running", "waiting"]);
    expect(numbersOf(path, 1)).toEqual([7]);
  });

  it("draws each step that has a pixel, and few of those that share one", () => {
    expect(joined(steps, 1)).toEqual([
      ["running", 0, 100],
      ["message", 100, 110],
      ["waiting", 110, 1110],
    ]);
    const many = Array.from({ length: 1000 }, (_, i) =>
      step(i % 3 === 0 ? "running" : "message", i * 10, i * 10 + 10),
    );
    const drawn = joined(many, 100);
    expect(drawn.length).toBeLessThanOrEqual(101);
    expect(drawn.every(([kind]) => kind === "message")).toBe(true);
    expect(drawn.reduce((sum, [, from, to]) => sum + to - from, 0)).toBe(10_000);
  });
});

describe("a part", () => {
  it("is the whole, or has its ends", () => {
    expect(partOf({ from: 0, to: 100 }, 100)).toBeNull();
    expect(partOf({ from: 1, to: 100 }, 100)).toEqual({ from: 1, to: 100 });
  });

  it("is shown with something around it, within the run", () => {
    expect(around({ from: 10_000, to: 20_000 }, 1e6)).toEqual({ from: 8500, to: 21_500 });
    expect(around({ from: 0, to: 20_000 }, 21_000)).toEqual({ from: 0, to: 21_000 });
  });
});

describe("messages", () => {
  const found = (drawn: number, count: number, elsewhere = 0): Arrows => ({
    arrows: Array.from({ length: drawn }, () => [0, 1, 1, 2, 8]),
    count,
    elsewhere,
  });

  it("that are not drawn are counted", () => {
    expect(told(found(1, 1), null, 300)).toBe("1 message between these lanes.");
    expect(told(found(300, 1200), null, 300)).toContain("1,200 messages");
    expect(told(found(300, 1200), null, 300)).toContain("too many");
    expect(told(found(5, 5), 7, 800)).toBe("5 messages of the chosen process.");
    expect(told(found(800, 1600, 3), 7, 800)).toBe(
      "800 of the 1,600 messages of the chosen process are drawn. 3 go to or come from processes without a lane.",
    );
  });
});

describe("findings", () => {
  it("have numbers first, then processes", () => {
    expect(kindText("bottleneck")).toBe("waiting for one");
    expect(kindText("some_new_one")).toBe("some new one");
    expect(sentence("in 60 % of the time")).toBe("In 60 % of the time");
    expect(sentence("logger works in 80 %")).toBe("logger works in 80 %");
    expect(
      evidenceRows({
        holders: [{ process: "p9", ns: 5, share: 0.5, waiting: 4 }],
        alone_ns: 1_500_000,
        longest: [{ from: 1, to: 2 }],
        other: 2.5,
      }),
    ).toEqual([
      ["only one could run", "1.5 ms"],
      ["other", "2.5"],
      ["p9", "50 % of the time alone, 4 wait for it"],
    ]);
    expect(evidenceRows({ processes: [{ process: "a", moves: 10, ins: 20 }] })).toEqual([
      ["a", "10 of 20 times"],
    ]);
  });
});

describe("the tree", () => {
  const rows = (depths: readonly number[]): Branch[] =>
    depths.map((depth, i) => ({ depth, process: i + 1, omitted: 0 }) as unknown as Branch);

  it("shows what is below open ones", () => {
    const tree = rows([0, 1, 2, 2, 1, 0]);
    const seen = (shut: number[], most = 100) =>
      inSight(tree, new Set(shut), most).map(({ at, hasMore, open }) => [at, hasMore, open]);
    expect(seen([])).toHaveLength(6);
    expect(seen([1])).toEqual([
      [0, true, true],
      [1, true, false],
      [4, false, true],
      [5, false, true],
    ]);
    expect(seen([0, 1])).toEqual([
      [0, true, false],
      [5, false, true],
    ]);
    expect(seen([], 2)).toHaveLength(2);
  });

  it("knows the way to a process", () => {
    const tree = rows([0, 1, 2, 2, 1, 2, 0]);
    expect(ancestors(tree, 6)).toEqual([4, 0]);
    expect(ancestors(tree, 4)).toEqual([1, 0]);
    expect(ancestors(tree, 7)).toEqual([]);
    expect(ancestors(tree, 99)).toEqual([]);
  });

  it("is open where it is small", () => {
    expect(shutAtFirst(rows([0, 1, 2])).size).toBe(0);
    const large = rows([0, ...Array.from({ length: 40 }, () => [1, 2]).flat()]);
    expect(inSight(large, shutAtFirst(large), 100)).toHaveLength(41);
  });
});
