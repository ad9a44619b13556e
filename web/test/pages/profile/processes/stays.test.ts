// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Stay } from "../../../../src/pages/profile/answers";
import { boxes } from "../../../../src/pages/profile/processes/stays-model";

describe("stays on schedulers", () => {
  const stays: Stay[] = [
    [3, 0, 50, 2, 10],
    [1, 50, 150, 1, 90],
    [3, 150, 151, 1, 1],
  ];

  it("have a row for each scheduler, and end with what is shown", () => {
    expect(boxes(stays, [1, 3], { from: 0, to: 100 })).toEqual([
      { x: 0, width: 50, row: 1 },
      { x: 50, width: 50, row: 0 },
    ]);
  });

  it("are seen however short", () => {
    const [, , last] = boxes(stays, [1, 3], { from: 0, to: 10_000 });
    expect(last).toEqual({ x: 1.5, width: 0.15, row: 1 });
  });

  it("of unknown schedulers are left out", () => {
    expect(boxes(stays, [], { from: 0, to: 100 })).toEqual([]);
  });
});
