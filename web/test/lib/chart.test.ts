// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  areaPath,
  gapOf,
  lastKnown,
  largest,
  linePath,
  nearest,
  runs,
  stack,
  type Box,
  type Domain,
} from "../../src/lib/chart-model";
import { timeLabel, timeTicks, valueTicks } from "../../src/lib/ticks";

const box: Box = { x: 0, y: 0, width: 100, height: 100 };
const domain: Domain = { from: 0, to: 100, max: 10 };

describe("ticks", () => {
  it("begin at 0, are round and end at or above the largest value", () => {
    expect(valueTicks(9, 4)).toEqual([0, 5, 10]);
    expect(valueTicks(1, 4)).toEqual([0, 0.5, 1]);
    expect(valueTicks(100, 4)).toEqual([0, 50, 100]);
    expect(valueTicks(0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
    for (const max of [1, 3, 7, 12, 99, 101, 12345, 0.02]) {
      const ticks = valueTicks(max, 4);
      expect(ticks[0]).toBe(0);
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(max);
      expect(ticks.length).toBeLessThanOrEqual(6);
    }
  });
  it("of bytes are multiples of their unit", () => {
    expect(valueTicks(3 * 1024 * 1024, 3, 1024)).toEqual([0, 1, 2, 3].map((n) => n * 1024 * 1024));
  });
  it("of nothing are an axis still", () => {
    expect(valueTicks(0, 4)).toEqual([0, 1]);
    expect(valueTicks(NaN, 4)).toEqual([0, 1]);
  });
  it("of time are on round times", () => {
    const { at, stepMs } = timeTicks(1_000_500, 1_060_500, 6);
    expect(stepMs).toBe(10_000);
    expect(at).toEqual([1_010_000, 1_020_000, 1_030_000, 1_040_000, 1_050_000, 1_060_000]);
    expect(timeTicks(5, 5, 3).at).toEqual([]);
    expect(timeLabel(new Date(2026, 0, 2, 3, 4, 5).getTime(), 1000)).toBe("03:04:05");
    expect(timeLabel(new Date(2026, 0, 2, 3, 4, 5).getTime(), 60_000)).toBe("03:04");
    expect(timeLabel(new Date(2026, 0, 2).getTime(), 86_400_000)).toBe("01-02");
  });
});

describe("lines", () => {
  it("are broken where values are not known and where time is missing", () => {
    const t = [0, 10, 20, 30, 40, 200, 210];
    expect(gapOf(t)).toBe(40);
    expect(runs(t, [1, null, 3, 4, 5, 6, 7], gapOf(t))).toEqual([
      [0, 0],
      [2, 4],
      [5, 6],
    ]);
    expect(runs([], [], 1)).toEqual([]);
  });
  it("show a lone point and keep to the axis' end", () => {
    expect(linePath([50], [20], domain, box)).toBe("M48.5,0.0L51.5,0.0");
    expect(linePath([0, 100], [0, 10], domain, box)).toBe("M0.0,100.0L100.0,0.0");
    expect(areaPath([0, 100], [5, 5], null, domain, box)).toBe(
      "M0.0,50.0L100.0,50.0L100.0,100.0L0.0,100.0Z",
    );
  });
  it("are stacked, unknown where one is unknown", () => {
    const series = [
      { key: "a", label: "a", values: [1, null, 3] },
      { key: "b", label: "b", values: [1, 2, 3] },
    ];
    expect(stack(series)).toEqual([
      [1, null, 3],
      [2, 2, 6],
    ]);
    expect(largest(series)).toBe(3);
    expect(largest(series, true)).toBe(6);
  });
});

describe("the last known values", () => {
  it("are those of any series", () => {
    const of = (values: (number | null)[]) => ({ key: "", label: "", values });
    expect(lastKnown([of([1, null, null]), of([1, 2, null])])).toBe(1);
    expect(lastKnown([of([null])])).toBe(-1);
    expect(lastKnown([])).toBe(-1);
  });
});

describe("the nearest time", () => {
  it("is found", () => {
    const t = [0, 10, 20];
    expect([-5, 4, 6, 15, 16, 99].map((at) => nearest(t, at))).toEqual([0, 0, 1, 1, 2, 2]);
    expect(nearest([], 3)).toBe(-1);
  });
});
