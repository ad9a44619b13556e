// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import {
  ago,
  byteRate,
  bytes,
  codeIn,
  count,
  duration,
  number,
  percent,
  rate,
  share,
  UNKNOWN,
  withUnit,
} from "../../src/lib/format";

describe("numbers", () => {
  it("have three digits at most and a prefix", () => {
    expect(
      [0, 0.5, 1, 9.99, 12.34, 123.4, 999.4, 999.6, 1234, 45_600, 1.2e6, 7e9].map(number),
    ).toEqual([
      "0",
      "0.5",
      "1",
      "9.99",
      "12.3",
      "123",
      "999",
      "1 k",
      "1.23 k",
      "45.6 k",
      "1.2 M",
      "7 G",
    ]);
    expect(number(100)).toBe("100");
    expect(number(-1500)).toBe("-1.5 k");
    expect(number(0.0004)).toBe("< 0.01");
    expect(number(-0.0004)).toBe("> -0.01");
  });
  it("are a dash where they are not known, and never 0", () => {
    for (const format of [number, count, bytes, byteRate, rate, share, percent, duration]) {
      for (const unknown of [null, undefined, NaN, Infinity]) expect(format(unknown)).toBe(UNKNOWN);
    }
  });
  it("keep all digits as counts", () => {
    expect(count(1234567)).toBe("1,234,567");
    expect(count(12.6)).toBe("13");
  });
  it("are bytes in binary units", () => {
    expect([0, 512, 1023, 1024, 1536, 1024 * 1024, 5.5 * 1024 ** 3].map(bytes)).toEqual([
      "0 B",
      "512 B",
      "1023 B",
      "1 KiB",
      "1.5 KiB",
      "1 MiB",
      "5.5 GiB",
    ]);
    expect(byteRate(2048)).toBe("2 KiB/s");
    expect(rate(1200)).toBe("1.2 k/s");
  });
  it("are per cent", () => {
    expect([0, 0.0004, 0.05, 0.5, 0.996, 1].map(share)).toEqual([
      "0 %",
      "< 0.1 %",
      "5 %",
      "50 %",
      "100 %",
      "100 %",
    ]);
  });
});

describe("times", () => {
  it("last", () => {
    expect([0, 0.35, 12, 59.6, 200, 3600, 7500, 90000].map(duration)).toEqual([
      "0 s",
      "350 ms",
      "12 s",
      "1 min",
      "3 min 20 s",
      "1 h",
      "2 h 5 min",
      "1 d 1 h",
    ]);
  });
  it("are before or after now", () => {
    expect([1_000_000, 999_600, 988_000, 700_000, 1_003_000].map((t) => ago(t, 1_000_000))).toEqual(
      ["now", "now", "12 s ago", "5 min ago", "in 3 s"],
    );
  });
});

describe("values with the server's units", () => {
  it("are shown by their unit", () => {
    expect(withUnit(2048, "bytes")).toBe("2 KiB");
    expect(withUnit(2048, "bytes/s")).toBe("2 KiB/s");
    expect(withUnit(12, "msg/s")).toBe("12 msg/s");
    expect(withUnit(12, "/s")).toBe("12/s");
    expect(withUnit(1234, null)).toBe("1,234");
    expect(withUnit("g1", null)).toBe("g1");
    expect(withUnit(null, "%")).toBe(UNKNOWN);
    expect(withUnit(["a", "b"], null)).toBe("a, b");
    expect(withUnit(1500, "ms")).toBe("2 s");
  });
});

it("commands in a sentence are told from its words", () => {
  expect(codeIn("`a b` starts one, `c` another.")).toEqual([
    { text: "a b", isCode: true },
    { text: " starts one, ", isCode: false },
    { text: "c", isCode: true },
    { text: " another.", isCode: false },
  ]);
  expect(codeIn("it's 5` long")).toEqual([{ text: "it's 5` long", isCode: false }]);
  expect(codeIn("")).toEqual([]);
});
