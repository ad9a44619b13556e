// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { FixtureCluster } from "../../src/dev/cluster";
import { FREE } from "../../src/model/flows";
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
});
