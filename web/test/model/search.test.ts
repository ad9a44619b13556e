// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { search } from "../../src/model/search";
import { Topology } from "../../src/model/topology";

const NODES = ["n10@h", "n2@h", "n1@h", "server_2@host", "orders_db@host"];
const GROUPS = ["orders", "n", "reorders"];
const topology = new Topology({
  epoch: 1,
  t: 0,
  nodes: NODES.map((name, id) => ({
    id,
    name,
    status: "up",
    groups: [],
    hidden: false,
    source: null,
    why: null,
    otp: null,
  })),
  groups: GROUPS.map((name, id) => ({
    id,
    name,
    nodes: [0, 1, 2],
    coordinator: null,
    names: null,
  })),
  monitors: [],
});
const found = (words: string) => search(topology, words).map((match) => match.name);

describe("a topology", () => {
  it("has its nodes and groups in natural order", () => {
    expect(topology.nodes.map((node) => node.name)).toEqual([
      "n1@h",
      "n2@h",
      "n10@h",
      "orders_db@host",
      "server_2@host",
    ]);
    expect(topology.groups.map((group) => group.name)).toEqual(["n", "orders", "reorders"]);
    expect(topology.groups[0].nodes).toEqual([2, 1, 0]);
  });
});

describe("a search", () => {
  it("has what is called exactly so first", () => {
    expect(found("n1")).toEqual(["n1@h", "n10@h"]);
    expect(found("N10@H")[0]).toBe("n10@h");
    expect(found("n")[0]).toBe("n");
    expect(found("orders")).toEqual(["orders", "orders_db@host", "reorders"]);
  });

  it("finds any part, and several in any order", () => {
    expect(found("_db")).toEqual(["orders_db@host"]);
    expect(found("host 2")).toEqual(["server_2@host"]);
    expect(found("nothing")).toEqual([]);
    expect(found("  ")).toEqual([]);
  });
});
