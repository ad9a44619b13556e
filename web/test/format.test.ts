// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { bytesPerS, commonHost, count, duration, number, percent, shortNode } from "../src/ui/format";

describe("numbers for people", () => {
  it("have three digits and SI steps", () => {
    expect([0, 0.001, 0.5, 1.5, 12.34, 123.4, 999.7, 1000, 1234, 999_950, 1.2e6, 5e12].map(number)).toEqual([
      "0", "< 0.01", "0.5", "1.5", "12.3", "123", "1 k", "1 k", "1.23 k", "1 M", "1.2 M", "5 T",
    ]);
    expect([null, undefined, NaN].map(number)).toEqual(["–", "–", "–"]);
    expect(count(12_345)).toBe("12,345");
    expect(bytesPerS(2048)).toBe("2.05 kB/s");
    expect(bytesPerS(12)).toBe("12 B/s");
    expect(percent(0.034)).toBe("3.4 %");
  });

  it("are spans in two units", () => {
    expect([400, 59_000, 61_000, 3_600_000, 90_061_000 * 2].map(duration)).toEqual(["400 ms", "59 s", "1 min 1 s", "1 h", "2 d 2 h"]);
  });

  it("are short names where the host says nothing", () => {
    expect(commonHost(["a@h", "b@h"])).toBe("h");
    expect(commonHost(["a@h", "b@i"])).toBe(null);
    expect(shortNode("a@h", "h")).toBe("a");
    expect(shortNode("a@h", null)).toBe("a@h");
  });
});
