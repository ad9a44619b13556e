// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import type { Link, Node, Traffic } from "../../../src/pages/profile/answers";
import { layout } from "../../../src/pages/profile/time-line/lanes";
import {
  nodeOf,
  nodeOfScheduler,
  ownName,
  waysOf,
  within,
} from "../../../src/pages/profile/nodes-model";

const node = (number: number, first: number, last: number, scheduler: number): Node => ({
  number,
  node: `n${number}@h`,
  first,
  last,
  scheduler,
  online: 2,
  from: 0,
  to: 100,
  error: 1,
  shift: 0,
  groups: [],
});
const NODES = [node(1, 1, 10, 0), node(2, 11, 30, 130)];

const link = (from: string, to: string): Link => ({
  from,
  to,
  sent: 3,
  sent_bytes: 30,
  received: 3,
  joined: 3,
  mean_ns: 5,
  least_ns: 4,
  most_ns: 6,
  error_ns: 1,
  common_group: null,
});

describe("nodes", () => {
  it("have the processes and the schedulers of their numbers", () => {
    expect([1, 10, 11, 30, 31].map((n) => nodeOf(n, NODES)?.number)).toEqual([
      1,
      1,
      2,
      2,
      undefined,
    ]);
    expect([1, 130, 131].map((n) => nodeOfScheduler(n, NODES)?.number)).toEqual([1, 1, 2]);
    expect(nodeOf(1, [])).toBeUndefined();
  });

  it("are not told twice", () => {
    expect(ownName("server at n1@h", NODES[0])).toBe("server");
    expect(ownName("server at n1@h", NODES[1])).toBe("server at n1@h");
    expect(ownName("server", undefined)).toBe("server");
  });

  it("have their lanes together, below a row of their own", () => {
    const lanes = [
      { process: 12, name: "b at n2@h" },
      { process: 1, name: "a at n1@h" },
      { process: 99, name: "nobody's" },
    ];
    const { rows } = layout(1000, [1, 131, 132], lanes, true, NODES);
    expect(rows.map(({ kind, label }) => [kind, label])).toEqual([
      ["path", "critical path"],
      ["node", "n1@h"],
      ["scheduler", "scheduler 1"],
      ["process", "a"],
      ["node", "n2@h"],
      ["scheduler", "scheduler 1"],
      ["scheduler", "scheduler 2"],
      ["process", "b"],
      ["process", "nobody's"],
    ]);
    rows.forEach((row, i) => {
      const before = rows[i - 1];
      if (before !== undefined) expect(row.y).toBeGreaterThanOrEqual(before.y + before.height);
    });
  });

  it("send each other what is told of them", () => {
    const traffic: Traffic = {
      sent: [
        { from: 1, to: 1, count: 7, bytes: 70 },
        { from: 1, to: 2, count: 2, bytes: 20 },
      ],
      whole: [link("n1@h", "n2@h"), link("n2@h", "x@h")],
    };
    expect(
      waysOf(traffic, NODES).map(({ from, to, count, link: of }) => [from, to, count, of?.mean_ns]),
    ).toEqual([
      ["n1@h", "n2@h", 2, 5],
      ["n2@h", "x@h", 0, 5],
    ]);
    const { sent } = traffic;
    expect(
      waysOf({ sent, whole: [] }, NODES).map(({ from, to, link: of }) => [from, to, of]),
    ).toEqual([["n1@h", "n2@h", null]]);
    expect(within(traffic)).toEqual({ own: 7, between: 2 });
  });
});
