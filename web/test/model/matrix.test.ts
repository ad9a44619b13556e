// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { FixtureCluster } from "../../src/dev/cluster";
import { FREE, HIDDEN } from "../../src/model/flows";
import { groupMatrix, nodeMatrix } from "../../src/model/matrix";
import { Frame } from "../../src/model/frame";
import { Topology } from "../../src/model/topology";

const sum = (values: Float64Array) => values.reduce((all, value) => all + value, 0);

describe("matrix", () => {
  const cluster = new FixtureCluster({ nodes: 60, groups: 6, t: 0 });
  const topology = new Topology(cluster.topology);
  const frame = new Frame(cluster.frame(1000), new Map());

  it("of groups holds all traffic once", () => {
    const matrix = groupMatrix(topology, frame);
    expect(matrix.rows.map((label) => label.id)).toEqual([1, 4, 5, 0, 2, 3, FREE]);
    expect(sum(matrix.msgs)).toBeCloseTo(frame.total()[0]);
    expect(sum(matrix.bytes)).toBeCloseTo(frame.total()[1]);
    matrix.rows.forEach((_, i) => expect(matrix.direct[i * matrix.columns.length + i]).toBe(0));
  });

  it("of nodes holds what goes from members to members", () => {
    const matrix = nodeMatrix(topology, frame, 0, 1);
    expect(matrix.rows.length).toBe(topology.group(0)!.nodes.length);
    expect(matrix.columns.length).toBe(topology.group(1)!.nodes.length);
    const free = nodeMatrix(topology, frame, FREE, FREE);
    expect(free.rows.every((label) => topology.node(label.id)!.groups.length === 0)).toBe(true);
  });

  it("tells hidden nodes from free ones, and those that nobody watches are one of them", () => {
    const { nodes, ...rest } = cluster.topology;
    const [free, member] = [nodes.find((one) => one.groups.length === 0)!, topology.group(0)!];
    const attached = new Topology({
      ...rest,
      nodes: [...nodes, { ...free, id: 900, name: "tool@h", hidden: true }],
    });
    const links: [number, number, number, number][] = [
      [900, member.nodes[0], 5, 1],
      [member.nodes[0], 901, 7, 1],
      [member.nodes[0], free.id, 2, 1],
    ];
    const small = new Frame({ ...cluster.frame(1000), links }, new Map());
    const groups = groupMatrix(attached, small);
    expect(groups.rows.slice(-2).map((label) => label.name)).toEqual(["(free)", "(hidden)"]);
    const row = groups.rows.length - 1;
    expect(sum(groups.msgs.slice(row * groups.columns.length))).toBe(5);
    expect(groups.direct.every((one) => one === 0)).toBe(true);
    const opened = nodeMatrix(attached, small, HIDDEN, 0);
    expect(opened.rows.map((label) => label.name)).toEqual(["tool@h", "(hidden)"]);
    expect(sum(opened.msgs)).toBe(5);
    expect(sum(nodeMatrix(attached, small, 0, HIDDEN).msgs)).toBe(7);
  });
});
