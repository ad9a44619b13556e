// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  clamped,
  exactly,
  fromQuery,
  lasting,
  panned,
  place,
  span,
  tickLabel,
  ticks,
  timeAt,
  toQuery,
  wanted,
  whole,
  zoomed,
} from "../../../src/pages/profile/range";

const DAY = 86_400e9;

describe("the range that is shown", () => {
  it("keeps what is below the pointer in its place", () => {
    let range = whole(DAY);
    const t = timeAt(300, range, 1000);
    for (let i = 0; i < 20; i += 1) range = zoomed(range, 2, 0.3, DAY);
    expect(span(range)).toBeCloseTo(DAY / 2 ** 20, -1);
    expect(place(t, range, 1000)).toBeCloseTo(300, 0);
  });

  it("zooms to some hundred nanoseconds, and back to the whole run", () => {
    let range = whole(1e9);
    for (let i = 0; i < 100; i += 1) range = zoomed(range, 3, 1, 1e9);
    expect(span(range)).toBe(200);
    expect(range.to).toBe(1e9);
    for (let i = 0; i < 100; i += 1) range = zoomed(range, 0.2, 0.7, 1e9);
    expect(range).toEqual({ from: 0, to: 1e9 });
  });

  it("stays within the run and as long as it was", () => {
    const range = clamped(100_000, 200_000, 1e6);
    expect(panned(range, -5, 1e6)).toEqual({ from: 0, to: 100_000 });
    expect(panned(range, 50, 1e6)).toEqual({ from: 900_000, to: 1e6 });
    expect(panned(range, 0.5, 1e6)).toEqual({ from: 150_000, to: 250_000 });
    expect(clamped(-50, 10, 100)).toEqual({ from: 0, to: 100 });
    expect(whole(0)).toEqual({ from: 0, to: 1 });
  });

  it("asks for whole nanoseconds within the limits", () => {
    const limits = { columns: 4096, cells: 524_288 };
    const range = clamped(400_001, 500_000, 1e6);
    expect(wanted(range, 1000, 10, 1e6, limits)).toEqual({
      from: 375_001,
      to: 525_000,
      columns: 1500,
    });
    expect(wanted(whole(1e6), 1000, 10, 1e6, limits)).toEqual({ from: 0, to: 1e6, columns: 1000 });
    expect(wanted(whole(1e6), 9000, 10, 1e6, limits).columns).toBe(4096);
    expect(wanted(whole(1e6), 4000, 500, 1e6, limits).columns).toBe(1048);
    expect(wanted(whole(1e6), 0, 0, 1e6, limits).columns).toBe(1);
  });

  it("stands in the address, and nonsense there is the whole", () => {
    const range = { from: 1000, to: 5000 };
    expect(fromQuery(toQuery(range, 1e6), 1e6)).toEqual(range);
    expect(toQuery(whole(1e6), 1e6)).toEqual({ from: "", to: "" });
    const wrong: Record<string, string>[] = [
      {},
      { from: "x", to: "9" },
      { from: "9", to: "3" },
      { to: "7" },
    ];
    for (const query of wrong) expect(fromQuery(query, 1e6)).toEqual(whole(1e6));
    expect(fromQuery({ from: "999999", to: "99999999" }, 1e6)).toEqual(whole(1e6));
  });
});

describe("times in words", () => {
  it("has round ticks, not more than asked for", () => {
    for (const length of [200, 1e3, 12_345, 1e6, 7.7e9, DAY]) {
      const { at, step } = ticks({ from: 17, to: 17 + length }, 10);
      expect(at.length).toBeGreaterThan(1);
      expect(at.length).toBeLessThanOrEqual(11);
      for (const t of at) expect(t % step).toBe(0);
      expect(new Set(at.map((t) => tickLabel(t, step))).size).toBe(at.length);
    }
  });

  it("has the digits that a step needs", () => {
    expect(tickLabel(0, 1e6)).toBe("0");
    expect(tickLabel(138_500_000, 100_000)).toBe("138.5 ms");
    expect(tickLabel(2e9, 5e8)).toBe("2.0 s");
    expect(tickLabel(1_500, 500)).toBe("1.5 µs");
    expect(exactly(1_564_696_123, { from: 0, to: 1e6 }, 1000)).toBe("1.564696 s");
  });

  it("tells lengths of time with three digits", () => {
    expect([0, 7, 999, 1_250, 45_600, 1e6, 123_456_789, 2e9].map(lasting)).toEqual([
      "0 s",
      "7 ns",
      "999 ns",
      "1.25 µs",
      "45.6 µs",
      "1 ms",
      "123 ms",
      "2 s",
    ]);
  });
});
