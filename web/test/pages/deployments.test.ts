// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { words } from "../../src/pages/deployments/plan";

test("what a plan comes to, in a sentence", () => {
  const plan = { changes: [] as string[], steps: [] as string[], refused: [] as string[] };
  expect(words(plan)).toBe("It would change nothing.");
  expect(words({ ...plan, changes: ["~ web: labels"] })).toBe("There is nothing to do for it.");
  expect(words({ ...plan, changes: ["+ web1"], steps: ["start web1"] })).toBe(
    "It would take 1 step.",
  );
  expect(words({ ...plan, steps: ["a", "b"] })).toBe("It would take 2 steps.");
  expect(words({ ...plan, steps: ["a"], refused: ["shop"] })).toContain("refused");
});
