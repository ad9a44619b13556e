// SPDX-License-Identifier: Apache-2.0
import { expect, test } from "vitest";
import { openAlarms } from "../../src/model/alarms";
import type { Alarm } from "../../src/model/protocol";
import { concerned, counted, silenced, tagsOf, wanted } from "../../src/pages/alarms/model";

const alarm = (id: string, more: Partial<Alarm> = {}): Alarm => ({
  id,
  alarm: "node_down",
  state: "raised",
  severity: "minor",
  worst: "minor",
  since: 1,
  cleared: null,
  why_cleared: null,
  count: 1,
  seq: 1,
  silenced: false,
  place: {},
  nodes: [],
  groups: [],
  text: id,
  cause: "",
  remedy: "",
  tags: [],
  acknowledged: null,
  comments: [],
  ...more,
});

const all = [
  alarm("a", { severity: "major", tags: ["op"] }),
  alarm("b", { tags: ["dev", "op"] }),
  alarm("c", { silenced: true }),
  alarm("d", { state: "acknowledged" }),
  alarm("e", { state: "cleared", severity: "major" }),
];
const ids = (alarms: readonly Alarm[]) => alarms.map(({ id }) => id);

test("by state, severity and tag", () => {
  const by = (more: object) =>
    ids(wanted(all, { state: "raised", severity: "all", tag: "", ...more }));
  expect(by({})).toEqual(["a", "b", "c"]);
  expect(by({ severity: "major" })).toEqual(["a"]);
  expect(by({ tag: "dev" })).toEqual(["b"]);
  expect(by({ state: "cleared" })).toEqual(["e"]);
});

test("those to look at are raised and not silenced", () => {
  expect(ids(openAlarms(all))).toEqual(["a", "b"]);
});

test("a silence is for the node, the family or the group of its alarm", () => {
  const of = (more: Partial<Alarm>) => concerned(alarm("x", more));
  expect(of({ place: { node: "a@h" }, nodes: ["a@h"], groups: ["g"] })).toEqual({ node: "a@h" });
  expect(of({ place: { group: "g" }, groups: ["g"] })).toEqual({ group: "g" });
  expect(of({ place: { family: "web" }, groups: ["g", "h"] })).toEqual({ family: "web" });
  expect(of({ place: { family: "web" } })).toEqual({ family: "web" });
});

test("in words", () => {
  expect(counted(all, 5)).toBe("1 major, 2 minor; 1 acknowledged.");
  expect(counted(all, 9)).toBe("1 major, 2 minor; 1 acknowledged; 4 more are not shown.");
  expect(counted([], 0)).toBe("None is raised.");
  expect(
    silenced({
      id: "s",
      by: "ann",
      at: 1,
      until: 2,
      text: "",
      match: { node: "web*", severity: "major" },
    }),
  ).toBe("node web*, major");
});

test("tags with their numbers, and the chosen one", () => {
  expect(tagsOf(all, "none")).toEqual([
    ["dev", 1],
    ["none", 0],
    ["op", 2],
  ]);
});
