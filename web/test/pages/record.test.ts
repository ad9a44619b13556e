// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Done } from "../../src/model/protocol";
import { type Found, withNewest, withOlder } from "../../src/pages/deployments/record-model";

const found = (next: string | null, ...numbers: number[]): Found => ({
  entries: numbers.map((number) => ({ number }) as Done),
  next,
});
const told = ({ entries, next }: Found) => [entries.map(({ number }) => number), next];

describe("the record", () => {
  it("keeps what was loaded while the newest has none of the kind", () => {
    const first = withNewest(null, found("a"), 3, false);
    expect(told(first)).toEqual([[], "a"]);
    const paged = withOlder(first, found("b", 7, 4));
    expect(told(withNewest(paged, found("c"), 3, true))).toEqual([[7, 4], "b"]);
    expect(told(withNewest(paged, found("c", 9000), 3, true))).toEqual([[9000, 7, 4], "b"]);
    expect(told(withNewest(withOlder(paged, found(null, 1)), found("c"), 3, true))).toEqual([
      [7, 4, 1],
      null,
    ]);
  });

  it("takes the newest of what is in both", () => {
    const known = found("a", 9, 8, 7, 2);
    expect(told(withNewest(known, found("b", 10, 9, 8), 3, false))).toEqual([
      [10, 9, 8, 7, 2],
      "a",
    ]);
  });

  it("leaves out what may not follow", () => {
    const known = found("a", 9, 8, 7);
    expect(told(withNewest(known, found("b", 20, 19, 18), 3, true))).toEqual([[20, 19, 18], "b"]);
    expect(told(withNewest(known, found("b", 9000), 3, false))).toEqual([[9000], "b"]);
    expect(told(withNewest(known, found("b"), 3, false))).toEqual([[], "b"]);
    // All there is: another cluster, say.
    expect(told(withNewest(known, found(null, 2, 1), 3, true))).toEqual([[2, 1], null]);
  });
});
