// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { Frame } from "../../src/model/frame";
import { flowOf, namesOf } from "../../src/model/known";
import { Topology } from "../../src/model/topology";

const node = (id: number, source: string) => ({
  id,
  name: `n${id}@h`,
  status: "up" as const,
  groups: [0],
  hidden: false,
  source,
  why: null,
  otp: null,
});
const cluster = (...sources: string[]) =>
  new Topology({
    epoch: 1,
    t: 0,
    nodes: sources.map((source, id) => node(id, source)),
    groups: [{ id: 0, name: "g", nodes: sources.map((_, id) => id), coordinator: null, names: 0 }],
    monitors: [],
  });
const frame = (nodes: (number | null)[][], names: number) =>
  new Frame(
    {
      seq: 1,
      t: 0,
      span_ms: 1000,
      epoch: 1,
      nodes,
      links: [],
      kinds: {},
      groups: [[0, { names }]],
      lost: {},
    },
    new Map([["out_msgs_s", 0]]),
  );

describe("names of a group", () => {
  it("are unknown without a probe, whatever is told", () => {
    const without = cluster("stock", "none");
    expect(namesOf(without, frame([], 0), without.groups[0])).toBe(null);
  });

  it("are counted by a probe on any of its nodes", () => {
    const mixed = cluster("stock", "probe");
    expect(namesOf(mixed, frame([], 18), mixed.groups[0])).toBe(18);
    expect(namesOf(mixed, null, mixed.groups[0])).toBe(0);
  });
});

describe("traffic of a group", () => {
  it("is none where a node is measured and unknown where none is", () => {
    expect(flowOf(undefined, frame([[0, 0]], 0), [0, 1]).msgs).toBe(0);
    expect(flowOf(undefined, frame([[0, null]], 0), [0, 1]).msgs).toBe(null);
    expect(flowOf(undefined, null, [0, 1]).msgs).toBe(null);
  });
});
