// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { containing } from "../../../src/pages/names/listed";

const listed = (...names: string[]) => ({
  names: names.map((name) => ({ name, pid: "<0.1.0>", node: "n1@h" })),
  total: names.length,
  more: false,
});

describe("names", () => {
  const all = listed("alice_home", "{queue,1}", "queue", "Alice");
  const found = (words: string) => containing(all, words).names.map((row) => row.name);

  it("are found by any part, in either case", () => {
    expect(found("alice")).toEqual(["alice_home", "Alice"]);
    expect(found("home")).toEqual(["alice_home"]);
    expect(found("1 que")).toEqual(["{queue,1}"]);
    expect(found("bob")).toEqual([]);
  });

  it("are told with how many there are in all", () => {
    expect(containing(all, "queue")).toMatchObject({ total: 4, more: false });
  });
});
