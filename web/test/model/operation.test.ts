// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { behind, families, look, stateWords } from "../../src/model/operation";
import type { Instance, OperationStatus } from "../../src/model/protocol";

const instance = (id: string, state: string, host: string | null = "lab/a"): Instance => ({
  id,
  state,
  host,
  node: null,
  release: "shop-1",
  why: null,
});

test("instances are put together by their family, what is amiss first", () => {
  const rows = families([
    instance("db1", "adopted"),
    instance("web1", "up"),
    instance("web2", "exited", "lab/b"),
    instance("web-2x10", "drained", null),
  ]);
  expect(rows.map(({ name, up, hosts }) => [name, up, hosts])).toEqual([
    ["db", 1, 1],
    ["web", 1, 2],
    ["web-2x", 0, 0],
  ]);
  expect(rows[1].states).toEqual([
    ["exited", 1],
    ["up", 1],
  ]);
});

test("what was put aside on purpose is not amiss", () => {
  expect(["up", "adopted", "drained", "released", "exited", "no_answer"].map(look)).toEqual([
    "well",
    "well",
    "aside",
    "aside",
    "amiss",
    "amiss",
  ]);
});

test("how far it is is said with numbers where they are known", () => {
  const status = (progress: OperationStatus["progress"]) =>
    stateWords({ state: "working", progress } as OperationStatus);
  expect(status({ done: 3, total: 12 })).toBe("3 of 12 steps are done.");
  expect(status(null)).toMatch(/looked at/);
});

test("a step that is under way is told once", () => {
  expect(
    behind(
      ["start web1", "start web2"],
      ["start web1", "start web2", "make the groups as the file says"],
      ["start web1: being done", "start web2: being done", "stop web3: a group would be without"],
    ),
  ).toEqual({
    left: ["make the groups as the file says"],
    waiting: ["stop web3: a group would be without"],
  });
});
