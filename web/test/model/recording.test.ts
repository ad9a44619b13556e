// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { written } from "../../src/model/recording";

const NOW = 1_000_000;
const file = (name: string, agoMs: number) => ({ name, bytes: 1, modified: NOW - agoMs });

describe("what is recorded now", () => {
  it("is the file that was written just now, whoever began it", () => {
    expect(written([file("old", 90_000), file("new", 900)], NOW, 1000, null)).toBe("new");
    expect(written([file("old", 90_000)], NOW, 1000, null)).toBe(null);
    expect(written([], NOW, 1000, null)).toBe(null);
    // Frames that are far apart are written far apart.
    expect(written([file("slow", 20_000)], NOW, 10_000, null)).toBe("slow");
  });

  it("is known at once to who starts and stops it", () => {
    expect(written([], NOW, 1000, { name: "mine", at: NOW - 100 })).toBe("mine");
    expect(written([file("mine", 200)], NOW, 1000, { name: null, at: NOW - 100 })).toBe(null);
  });

  it("is seen when somebody else goes on after that", () => {
    const stopped = { name: null, at: NOW - 60_000 };
    expect(written([file("theirs", 500)], NOW, 1000, stopped)).toBe("theirs");
    const started = { name: "mine", at: NOW - 60_000 };
    expect(written([file("mine", 30_000)], NOW, 1000, started)).toBe(null);
  });
});
