// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { type Incident, incidents, isIncident } from "../../src/model/incidents";
import type { ClusterEvent, Level } from "../../src/model/protocol";

let id = 0;
const event = (
  t: number,
  kind: string,
  more: Partial<ClusterEvent> = {},
  level: Level = "notice",
): ClusterEvent => ({ id: ++id, t, kind, level, text: kind, ...more });

const link = (t: number, kind: "node_down" | "node_up", node: string, peer: string) =>
  event(t, kind, { node, details: { peer }, text: `link to ${peer}` }, "warning");

const shapes = (list: readonly (ClusterEvent | Incident)[]) =>
  list.map((one) => (isIncident(one) ? [one.head.text, one.events.length] : one.kind));

describe("incidents", () => {
  const death = () => [
    link(1000, "node_down", "n1@h", "n9@h"),
    link(1010, "node_down", "n2@h", "n9@h"),
    event(1500, "node_down", { node: "n9@h", text: "n9@h is down" }, "warning"),
    event(1600, "coordinator_changed", { node: "n1@h", group: "red" }),
    event(1700, "component_split", { node: "n1@h", group: "red" }, "error"),
  ];

  it("gather what followed from the death of a node, headed by the monitor's own word", () => {
    const [one, ...rest] = incidents(death(), (node) => (node === "n9@h" ? ["red"] : []));
    expect(rest).toEqual([]);
    expect(shapes([one])).toEqual([["n9@h is down", 5]]);
    expect((one as Incident).level).toBe("error");
  });

  it("gather the links of a tool that came or went, and those of a node with its death", () => {
    const tool = (t: number, node: string, kind = "link_up") =>
      event(t, kind, { node, details: { peer: "tool@h" }, text: `${kind} tool@h` }, "info");
    const mixed = [
      tool(0, "n1@h"),
      event(3, "coordinator_changed", { node: "n1@h", group: "red" }),
      tool(5, "n2@h"),
      tool(60_000, "n1@h", "link_down"),
      tool(60_001, "n2@h", "link_down"),
    ];
    expect(shapes(incidents(mixed, () => ["red"]))).toEqual([
      "coordinator_changed",
      ["link_up tool@h", 2],
      ["link_down tool@h", 2],
    ]);
    const died = (t: number, node: string) =>
      event(t, "link_down", { node, details: { peer: "n9@h" } }, "warning");
    const lost = [
      died(0, "n1@h"),
      event(5, "node_down", { node: "n9@h", text: "n9@h is down" }, "warning"),
      died(6, "n2@h"),
      event(7, "component_split", { node: "n1@h", group: "red" }, "warning"),
    ];
    const [one, ...rest] = incidents(lost, () => ["red"]);
    expect(rest).toEqual([]);
    expect(shapes([one])).toEqual([["n9@h is down", 4]]);
    expect((one as Incident).cause).toBe("down");
  });

  it("leave what has another cause alone", () => {
    const others = [
      event(1650, "coordinator_changed", { node: "n5@h", group: "blue" }),
      event(1660, "long_gc", { node: "n1@h" }),
    ];
    const events = [...death(), ...others].sort((a, b) => a.t - b.t);
    expect(shapes(incidents(events, () => ["red"]))).toEqual([
      "coordinator_changed",
      "long_gc",
      ["n9@h is down", 5],
    ]);
  });

  it("are told apart by node, by what happened and by time", () => {
    const events = [
      link(0, "node_down", "n1@h", "n9@h"),
      link(5, "node_down", "n1@h", "n8@h"),
      link(10, "node_down", "n2@h", "n9@h"),
      link(15, "node_down", "n2@h", "n8@h"),
      link(900, "node_up", "n1@h", "n9@h"),
      link(905, "node_up", "n2@h", "n9@h"),
      link(60_000, "node_down", "n1@h", "n9@h"),
    ];
    expect(shapes(incidents(events))).toEqual([
      ["link to n9@h", 2],
      ["link to n8@h", 2],
      ["link to n9@h", 2],
      "node_down",
    ]);
  });

  it("go on while a node hangs, until it is up again", () => {
    const split = (t: number, of: string) =>
      event(t, "component_split", {
        node: "n1@h",
        group: "red",
        text: `red goes on without ${of}`,
      });
    const lost = (t: number, peer: string) =>
      event(t, "link_down", { node: "n1@h", details: { peer } }, "warning");
    const events = [
      event(0, "node_unreachable", { node: "n9@h", text: "n9@h is silent" }, "warning"),
      event(4000, "member_aside", { node: "n1@h", group: "red", text: "red: n9@h" }),
      split(70_000, "n9@h"),
      lost(70_010, "n9@h"),
      split(70_020, "n8@h"),
      event(100_000, "node_up", { node: "n9@h", text: "n9@h is up" }),
      split(200_000, "n9@h"),
    ];
    expect(shapes(incidents(events, () => ["red"]))).toEqual([
      ["n9@h is silent", 4],
      "component_split",
      "node_up",
      "component_split",
    ]);
  });

  it("are headed by the monitor's word on a gateway of which others missed a sign first", () => {
    const silent = (t: number, by: string) =>
      event(
        t,
        "gateway_silent",
        { node: by, text: "the gateway n9@h gives no sign", details: { nodes: ["n9@h"] } },
        "warning",
      );
    const events = [
      silent(0, "n1@h"),
      silent(10, "n2@h"),
      event(900, "node_unreachable", { node: "n9@h", text: "n9@h is silent" }, "warning"),
      silent(950, "n3@h"),
      event(4000, "member_aside", { node: "n1@h", group: "red", text: "red: n9@h" }),
      event(9000, "node_up", { node: "n9@h", text: "n9@h is up" }),
      silent(100_000, "n1@h"),
      silent(100_010, "n2@h"),
      // The gateway was not down: what is told of it later has another cause.
      event(300_000, "component_split", { node: "n1@h", group: "red", text: "without n9@h" }),
    ];
    const found = incidents(events, () => ["red"]);
    expect(shapes(found)).toEqual([
      ["n9@h is silent", 5],
      "node_up",
      ["the gateway n9@h gives no sign", 2],
      "component_split",
    ]);
    expect((found[2] as Incident).cause).toBe("silent");
  });

  it("do not take one node's name for another's", () => {
    const events = [
      event(0, "node_down", { node: "n1@h" }),
      event(10, "undelivered", { node: "n2@h", text: "n1@host did not answer" }),
      event(20, "undelivered", { node: "n2@h", text: "to n1@h: no way" }),
    ];
    expect(shapes(incidents(events))).toEqual(["undelivered", ["node_down", 2]]);
  });

  it("are of a group's creation, too", () => {
    const events = [
      event(0, "group_created", { node: "n1@h", group: "g" }),
      event(5, "group_created", { node: "n2@h", group: "g" }),
      event(9, "member_live", { node: "n1@h", group: "g" }),
      event(9, "name_clash", { node: "n1@h", group: "g" }),
    ];
    expect(shapes(incidents(events))).toEqual([["group_created", 3], "name_clash"]);
  });
});
