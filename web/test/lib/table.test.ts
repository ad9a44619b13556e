// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { filtered, moved, nextOrder, sight, sorted } from "../../src/lib/table-model";

describe("order", () => {
  it("is by size for numbers, also those in text", () => {
    expect(sorted(["n10", "n2", "N1"], (x) => x, "ascending")).toEqual(["N1", "n2", "n10"]);
    expect(sorted([3, 10, 2], (x) => x, "descending")).toEqual([10, 3, 2]);
  });
  it("has what is not known after the rest, either way", () => {
    expect(sorted([null, 1, NaN, 2], (x) => x, "ascending")).toEqual([1, 2, null, NaN]);
    expect(sorted([null, 1, undefined, 2], (x) => x, "descending")).toEqual([
      2,
      1,
      null,
      undefined,
    ]);
  });
  it("keeps rows that are equal as they were", () => {
    const rows = [..."abcdef"].map((name, i) => ({ name, value: i % 2 }));
    expect(
      sorted(rows, (row) => row.value, "descending")
        .map((row) => row.name)
        .join(""),
    ).toBe("bdface");
  });
  it("turns round, and begins with the largest number", () => {
    expect(nextOrder(null, "a", true)).toEqual({ key: "a", direction: "descending" });
    expect(nextOrder(null, "a", false)).toEqual({ key: "a", direction: "ascending" });
    expect(nextOrder({ key: "a", direction: "descending" }, "a", true)).toEqual({
      key: "a",
      direction: "ascending",
    });
    expect(nextOrder({ key: "b", direction: "descending" }, "a", false)).toEqual({
      key: "a",
      direction: "ascending",
    });
  });
});

describe("filter", () => {
  it("wants all words, in any case and place", () => {
    const rows = ["a@host1 b@host2", "B@HOST1", "c"];
    const found = (words: string) => filtered(rows, words, (row) => row);
    expect(found("b host1")).toEqual(["a@host1 b@host2", "B@HOST1"]);
    expect(found("  ")).toBe(rows);
    expect(found("zz")).toEqual([]);
  });
});

describe("rows in sight", () => {
  it("are those of the place, and some around", () => {
    expect(sight(1000, 3200, 320, 32, 0)).toEqual([100, 110]);
    expect(sight(1000, 0, 320, 32, 8)).toEqual([0, 18]);
    expect(sight(5, 3200, 320, 32)).toEqual([4, 5]);
    expect(sight(0, 0, 320, 32)).toEqual([0, 0]);
  });
  it("are moved in by keys", () => {
    expect(moved("ArrowDown", 0, 3, 10)).toBe(1);
    expect(moved("ArrowUp", 0, 3, 10)).toBe(0);
    expect(moved("PageDown", 0, 3, 10)).toBe(2);
    expect(moved("End", 0, 3, 10)).toBe(2);
    expect(moved("Home", 2, 3, 10)).toBe(0);
    expect(moved("a", 2, 3, 10)).toBeNull();
    expect(moved("End", 0, 0, 10)).toBeNull();
  });
});
