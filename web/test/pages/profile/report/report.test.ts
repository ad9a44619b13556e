// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Sums } from "../../../../src/pages/profile/answers";
import type { Leader, Measure, Report } from "../../../../src/pages/profile/sums-answers";
import {
  activity,
  activityText,
  awake,
  barOf,
  curve,
  curveText,
  hasRun,
  hasRunnable,
  LISTS,
  lists,
  utilisation,
} from "../../../../src/pages/profile/report/report-model";

const none: Sums = {
  run: 0,
  runnable: 0,
  wait: 0,
  gc: 0,
  exiting: 0,
  ins: 0,
  sent: 0,
  sent_bytes: 0,
  received: 0,
  received_bytes: 0,
  moves: 0,
};
const leader = (number: number, sums: Partial<Sums>): Leader => ({
  ...none,
  ...sums,
  process: `p${number}`,
  number,
  entry: "m:f/0",
});
const report = (more: Partial<Report> = {}): Report => ({
  totals: none,
  processes: 2,
  width: 10,
  top: Object.fromEntries(LISTS.map(({ measure }) => [measure, []])) as unknown as Record<
    Measure,
    Leader[]
  >,
  concurrency: [],
  awake_ns: {},
  ...more,
});

describe("the report", () => {
  it("has each measure once, and says which the recording lacks", () => {
    expect(new Set(LISTS.map(({ measure }) => measure)).size).toBe(10);
    const one = report();
    one.top.run = [leader(1, { run: 5 })];
    const { shown, empty } = lists(one);
    expect(shown.map(({ measure }) => measure)).toEqual(["run"]);
    expect(empty.length).toBe(9);
    expect(empty.find(({ title }) => title.startsWith("Collects"))?.item).toBe(
      "garbage_collection",
    );
  });

  it("has bars as long as their part of the greatest", () => {
    const rows = [leader(1, { run: 100 }), leader(2, { run: 25 }), leader(3, {})];
    expect(rows.map((row) => barOf(row, rows, "run"))).toEqual([1, 0.25, 0]);
    expect(barOf(leader(1, {}), [leader(1, {})], "gc")).toBe(0);
  });

  it("shows what a process did as parts of the whole, never more than that", () => {
    expect(activity({ ...none, run: 20, wait: 30 }, 100)).toEqual([
      { kind: "running", share: 0.2 },
      { kind: "waiting", share: 0.3 },
    ]);
    const sums = { ...none, run: 60, runnable: 50, wait: 10 };
    const all = activity(sums, 100).reduce((sum, { share }) => sum + share, 0);
    expect(all).toBeCloseTo(1);
    expect(activityText(sums)).toBe("runs 60 ns, waits for a scheduler 50 ns, waits 10 ns");
    expect(activity(none, 0)).toEqual([]);
  });

  it("tells how far schedulers were used and awake", () => {
    const ran = report({ totals: { ...none, run: 150, runnable: 50 } });
    expect(utilisation(ran, { online: 2, duration: 100 })).toBe(0.75);
    expect(utilisation(ran, { online: null, duration: 100 })).toBeNull();
    expect(awake({ awake_ns: { "10": 50, "2": 100, "1": 300 } }, 200)).toEqual([
      { scheduler: 1, share: 1 },
      { scheduler: 2, share: 0.5 },
      { scheduler: 10, share: 0.25 },
    ]);
    const text = curveText(
      { ...ran, concurrency: [{ from: 0, running: 2, runnable: 1.5 }] },
      { online: 2, duration: 100, runnable: "recorded" },
    );
    expect(text).toBe(
      "On average 1.5 processes run and 0.5 wait for a scheduler on 2 schedulers; at most 3.5 run or wait for one",
    );
  });

  it("tells nothing of what was not recorded", () => {
    const calls = { items: ["callgraph"], totals: none, runnable: "none" } as const;
    const known = (items: string[], runnable: "recorded" | "none") => ({
      ...calls,
      items,
      runnable,
    });
    expect(hasRun({ ...calls, items: ["callgraph"] })).toBe(false);
    expect(hasRun(known(["migration"], "none"))).toBe(true);
    expect(hasRunnable(known(["running"], "none"))).toBe(false);
    expect(hasRunnable(known(["running"], "recorded"))).toBe(true);
    expect(hasRun({ items: [], totals: { ...none, run: 1 } })).toBe(true);
    expect(activityText({ ...none, run: 60, wait: 10 }, false)).toBe("runs 60 ns, waits 10 ns");
    const ran = report({
      totals: { ...none, run: 150 },
      concurrency: [{ from: 0, running: 2, runnable: 0 }],
    });
    expect(curveText(ran, { online: null, duration: 100, runnable: "none" })).toBe(
      "On average 1.5 processes run; at most 2 run",
    );
  });

  it("has each point of the curve in the middle of its time", () => {
    const two = report({
      concurrency: [
        { from: 0, running: 1, runnable: 0 },
        { from: 10, running: 2, runnable: 3 },
      ],
    });
    expect(curve(two)).toEqual({ t: [5, 15], running: [1, 2], runnable: [0, 3] });
  });
});
