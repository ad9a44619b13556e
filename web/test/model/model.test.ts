// SPDX-License-Identifier: Apache-2.0
import { describe, expect, it } from "vitest";
import { FixtureCluster } from "../../src/dev/cluster";
import { Edges } from "../../src/model/edges";
import { Flows, FREE, HIDDEN } from "../../src/model/flows";
import { discRadius, Layout, slotPosition } from "../../src/model/layout";
import { walk } from "../../src/model/walk";
import { AGGREGATE_ABOVE, expandedGroups, layoutInput, makeScene } from "../../src/model/scene";
import { Motion } from "../../src/pages/groups/motion";
import { Frame } from "../../src/model/frame";
import type { TopologyMessage } from "../../src/model/protocol";
import { Topology } from "../../src/model/topology";
import { forgetIds, forgetLooks, groupIdentity, meetGroups } from "../../src/model/identity";
import { labeller } from "../../src/model/node-names";
import { absolute, position, relative, ticks, width } from "../../src/model/traffic-scale";

function small(): Topology {
  const node = (id: number, groups: number[]) => ({
    id,
    name: `n${id}@h`,
    status: "up" as const,
    groups,
    hidden: false,
    source: null,
    why: null,
    otp: null,
  });
  const message: Omit<TopologyMessage, "type"> = {
    epoch: 1,
    t: 0,
    nodes: [node(0, [0]), node(1, [0, 1]), node(2, [1]), node(3, [])],
    groups: [
      { id: 0, name: "a", nodes: [0, 1], coordinator: 0, names: 0 },
      { id: 1, name: "b", nodes: [1, 2], coordinator: 1, names: 0 },
    ],
    monitors: [],
  };
  return new Topology(message);
}

const frame = (links: [number, number, number, number][]) =>
  new Frame(
    { seq: 1, t: 0, span_ms: 1000, epoch: 1, nodes: [], links, kinds: {}, lost: {} },
    new Map(),
  );

describe("flows between groups", () => {
  const flows = new Flows(
    small(),
    frame([
      [0, 1, 10, 100],
      [0, 2, 4, 40],
      [3, 1, 6, 60],
      [1, 2, 1, 1],
      [1, 99, 2, 2],
    ]),
  );

  it("are inside the shared group, else between the groups, with every message counted once", () => {
    expect(flows.get(0, 0)).toMatchObject({ msgs: 10, bytes: 100, direct: 0 });
    expect(flows.get(0, 1)).toMatchObject({ msgs: 4, direct: 4 });
    expect(flows.get(1, 1)).toMatchObject({ msgs: 1 });
    expect(flows.get(FREE, 0)).toMatchObject({ msgs: 3 });
    expect(flows.get(FREE, 1)).toMatchObject({ msgs: 3 });
    // Whoever is linked and not watched, such as another monitor, is no free node.
    expect(flows.get(0, FREE)).toBeUndefined();
    expect(flows.get(0, HIDDEN)).toMatchObject({ msgs: 1 });
    expect([...flows.all()].reduce((sum, flow) => sum + flow.msgs, 0)).toBe(23);
  });
});

describe("layout", () => {
  /** Groups 0 to n-1 in that order, tied by a gateway between neighbours, with four nodes of their own. */
  const ring = (order: number[], aspect: number) => {
    const ties = order.map((id, i) => [id, order[(i + 1) % order.length]]);
    const nodes = [...ties, ...order.flatMap((id) => [[id], [id], [id], [id]])].map(
      (groups, id) => ({ id, groups }),
    );
    return {
      input: { aspect, groups: [...order].sort((a, b) => a - b).map((id) => ({ id })), nodes },
      ties,
    };
  };

  it("walks along a ring and a chain, whatever the order of the groups", () => {
    const { input, ties } = ring([2, 0, 3, 1, 4], 1);
    const side = walk(input);
    side.forEach((id, i) =>
      expect(
        ties.some(
          ([a, b]) => [a, b].sort().join() === [id, side[(i + 1) % side.length]].sort().join(),
        ),
      ).toBe(true),
    );
    const chain = [
      [3, 1],
      [1, 0],
      [0, 2],
    ].map((groups) => ({ groups }));
    expect(
      [walk({ groups: [0, 1, 2, 3].map((id) => ({ id })), nodes: chain })].map((way) =>
        way[0] === 3 ? way : way.reverse(),
      ),
    ).toEqual([[3, 1, 0, 2]]);
    expect(walk({ groups: [{ id: 5 }, { id: 6 }], nodes: [] })).toEqual([5, 6]);
  });

  it("draws a ring of groups without a crossing", () => {
    const orders = [
      [0, 1, 2, 3],
      [0, 2, 1, 3],
      [3, 0, 2, 1],
      [4, 0, 3, 1, 2],
      [0, 3, 1, 5, 2, 4],
    ];
    for (const order of orders) {
      for (const aspect of [0.5, 1, 1.6]) {
        const { input, ties } = ring(order, aspect);
        const { groups } = new Layout().update(input);
        const at = (id: number) =>
          groups.find((group) => group.id === id) as { x: number; y: number };
        const turns = (
          a: { x: number; y: number },
          b: { x: number; y: number },
          c: { x: number; y: number },
        ) => Math.sign((b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x));
        const crossings = ties.flatMap(([a, b], i) =>
          ties
            .slice(i + 1)
            .filter(
              ([c, d]) =>
                new Set([a, b, c, d]).size === 4 &&
                turns(at(a), at(b), at(c)) !== turns(at(a), at(b), at(d)) &&
                turns(at(c), at(d), at(a)) !== turns(at(c), at(d), at(b)),
            ),
        );
        expect(crossings, `${order} at ${aspect}`).toEqual([]);
      }
    }
  }, 60_000);

  const topology = new Topology(new FixtureCluster({ nodes: 120, groups: 12, t: 0 }).topology);

  it("places everything apart, and keeps it when one node goes", () => {
    const layout = new Layout();
    const input = layoutInput(topology, 1.4);
    const first = layout.update(input);
    expect(first.nodes.length).toBe(120);
    for (const a of first.groups) {
      for (const b of first.groups) {
        if (a.id < b.id)
          expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan((a.r + b.r) * 0.97);
      }
    }
    const gone = input.nodes.find((node) => node.groups.length === 1)!;
    const next = layout.update({ ...input, nodes: input.nodes.filter((node) => node !== gone) });
    const before = new Map(first.nodes.map((place) => [place.id, place]));
    const moved = next.nodes.map((place) =>
      Math.hypot(place.x - before.get(place.id)!.x, place.y - before.get(place.id)!.y),
    );
    expect(next.nodes.length).toBe(119);
    expect(Math.max(...moved)).toBeLessThan(60);
  });

  it("is the same each time", () => {
    const input = layoutInput(topology, 1);
    expect(new Layout().update(input)).toEqual(new Layout().update(input));
  });

  it("is the same whatever numbers the server gives", () => {
    const other = (id: number) => (id < 0 ? id : 1000 - id * 3);
    const [a, b] = [layoutInput(topology, 1), layoutInput(topology, 1)];
    for (const group of b.groups) group.id = other(group.id);
    for (const node of b.nodes) {
      node.id = other(node.id);
      node.groups = node.groups.map(other).reverse();
    }
    const [first, second] = [new Layout(), new Layout()].map((layout, i) =>
      layout.update([a, b][i]),
    );
    const renumbered = <T extends { id: number }>(places: readonly T[]) =>
      places.map((place) => ({ ...place, id: other(place.id) }));
    expect(second.groups).toEqual(renumbered(first.groups));
    expect(second.nodes).toEqual(renumbered(first.nodes));
    // A server that starts anew while the page is open: everything stays about where it was.
    const layout = new Layout();
    layout.update(a);
    const before = new Map(layout.update(a).nodes.map((place) => [other(place.id), place]));
    for (const { id, x, y } of layout.update(b).nodes)
      expect(Math.hypot(x - before.get(id)!.x, y - before.get(id)!.y)).toBeLessThan(60);
  });

  it("of very many groups takes what their gateways take, and has each amid its own", () => {
    // Ten gateways in 360 groups each: what is done for each two groups of a gateway took a minute.
    const groups = Array.from({ length: 1200 }, (_, id) => ({ id, name: `g${id}` }));
    const nodes = Array.from({ length: 10 }, (_, id) => ({
      id,
      name: `n${id}`,
      groups: groups
        .map((group) => group.id)
        .filter((group) => [0, 1, 2].some((k) => (group * 7 + k * (1 + (group % 3))) % 10 === id)),
    }));
    const start = performance.now();
    const places = new Layout().update({ aspect: 1.3, groups, nodes });
    expect(performance.now() - start).toBeLessThan(20_000);
    const at = new Map(places.nodes.map((place) => [place.id, place]));
    const far = Math.max(...places.nodes.map(({ x, y }) => Math.hypot(x, y)));
    for (const { id, x, y } of places.groups.slice(0, 10)) {
      const own = nodes.filter((node) => node.groups.includes(id)).map((node) => at.get(node.id)!);
      const middle = (axis: "x" | "y") => own.reduce((sum, one) => sum + one[axis], 0) / own.length;
      expect(Math.hypot(x - middle("x"), y - middle("y"))).toBeLessThan(far);
    }
    expect(new Set(places.groups.map(({ x, y }) => `${x} ${y}`)).size).toBe(1200);
    for (const a of places.nodes)
      for (const b of places.nodes)
        if (a.id < b.id) expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(40);
  }, 60_000);

  it("holds all slots of a disc in it, apart from each other", () => {
    for (const members of [1, 2, 5, 6, 30]) {
      const slots = Array.from({ length: members }, (_, i) => slotPosition(i, members));
      for (const [x, y] of slots) expect(Math.hypot(x, y) + 10).toBeLessThan(discRadius(members));
      slots.forEach(([x, y], i) =>
        slots
          .slice(i + 1)
          .forEach(([u, v]) => expect(Math.hypot(x - u, y - v)).toBeGreaterThan(21)),
      );
    }
  });
});

describe("scene", () => {
  it("has bubbles from afar and nodes from near", () => {
    const topology = new Topology(new FixtureCluster({ nodes: 100, groups: 10, t: 0 }).topology);
    const layout = new Layout().update(layoutInput(topology, 1));
    expect(topology.nodes.length).toBeGreaterThan(AGGREGATE_ABOVE);
    const far = makeScene(topology, layout, expandedGroups(topology, "auto", null, false));
    const near = makeScene(topology, layout, expandedGroups(topology, "auto", null, true));
    const open = makeScene(topology, layout, expandedGroups(topology, "auto", 3, false));
    expect(far.entities.filter((entity) => entity.kind === "bubble").length).toBe(11);
    expect(near.entities.length).toBe(100);
    expect(open.discs.filter((disc) => disc.expanded).map((disc) => disc.id)).toEqual([3]);
    for (const scene of [far, near, open]) {
      for (const node of topology.nodes)
        expect(scene.entities[scene.entityOfNode[node.id]].members).toContain(node.id);
    }
  });
});

describe("edges", () => {
  it("sum links between entities, and forget none over a rebuild", () => {
    const topology = small();
    const layout = new Layout().update(layoutInput(topology, 1));
    const nodes = makeScene(topology, layout, expandedGroups(topology, "nodes", null, false));
    const groups = makeScene(topology, layout, expandedGroups(topology, "groups", null, false));
    const edges = new Edges();
    edges.rebuild(nodes, null);
    const links = frame([
      [0, 2, 5, 50],
      [0, 1, 1, 1],
      [2, 0, 0, 0],
    ]);
    edges.update(topology, links, { measure: "msgs", minimum: 0, scale: "" });
    expect(edges.count).toBe(2);
    expect([edges.direct[0], edges.direct[1]]).toEqual([1, 0]);
    expect(edges.ease(1)).toBe(false);
    expect(edges.shown[0]).toBeCloseTo(position(5, absolute("msgs")));
    edges.rebuild(groups, nodes);
    edges.update(topology, links, { measure: "msgs", minimum: 2, scale: "" });
    edges.ease(1);
    expect(edges.shown[0]).toBeCloseTo(position(5, absolute("msgs")));
    expect(edges.shown[1]).toBeLessThan(0);
  });

  it("are spread over a relative scale of what is shown", () => {
    const topology = small();
    const layout = new Layout().update(layoutInput(topology, 1));
    const edges = new Edges();
    edges.rebuild(
      makeScene(topology, layout, expandedGroups(topology, "nodes", null, false)),
      null,
    );
    const links = frame([
      [0, 2, 1, 50],
      [0, 1, 20, 1],
      [2, 0, 100, 0],
    ]);
    edges.update(topology, links, { measure: "msgs", minimum: 0, scale: "relative" });
    edges.ease(1);
    expect([edges.scale.low, edges.scale.high]).toEqual([1, 100]);
    expect(edges.shown[2]).toBe(1);
    // What is too little to be shown has no say in it.
    edges.update(topology, links, { measure: "msgs", minimum: 10, scale: "relative" });
    edges.ease(1);
    expect([edges.scale.low, edges.scale.high]).toEqual([10, 100]);
  });
});

describe("motion", () => {
  it("lets new things grow, gone things fade and moved things glide", () => {
    const motion = new Motion<{ key: string; x: number; y: number; size: number; extra: number }>();
    const item = (key: string, x: number) => ({ key, x, y: 0, size: 1, extra: 0 });
    motion.set([item("a", 0), item("b", 10)], 0);
    motion.advance(1, true);
    motion.set([item("b", 20), item("c", 30)], 100);
    expect(motion.advance(425, false)).toBe(true);
    expect(motion.x(0)).toBeGreaterThan(10);
    expect(motion.x(0)).toBeLessThan(20);
    expect(motion.size(1)).toBeGreaterThan(0);
    expect(motion.ghosts.map((ghost) => ghost.key)).toEqual(["a"]);
    expect(motion.advance(2000, false)).toBe(false);
    expect([motion.x(0), motion.size(1), motion.ghosts.length]).toEqual([20, 1, 0]);
  });
});

describe("looks", () => {
  const looksOf = (groups: readonly { id: number; name: string }[]) => {
    forgetLooks();
    meetGroups(groups);
    return new Map(groups.map(({ id, name }) => [name, JSON.stringify(groupIdentity(id, false))]));
  };
  const numbered = (names: readonly string[]) => names.map((name, id) => ({ id, name }));

  it("of groups stay when a group comes that sorts first, also in a page loaded later", () => {
    const names = Array.from({ length: 30 }, (_, i) => `group${i}`);
    const before = looksOf(numbered(names));
    const later = looksOf(numbered([...names, "a"]).reverse());
    for (const name of names) expect(later.get(name)).toBe(before.get(name));
  });

  it("of groups are as they were when the server numbers them anew", () => {
    const of = (id: number) => groupIdentity(id, false).color;
    forgetLooks();
    meetGroups([
      { id: 31, name: "g10" },
      { id: 12, name: "g9" },
    ]);
    const before = [of(12), of(31)];
    forgetIds();
    meetGroups([{ id: 1, name: "g9" }]);
    expect(of(1)).toBe(before[0]);
  });

  it("of up to ten groups have ten hues, and of up to forty are all different", () => {
    const names = Array.from({ length: 40 }, (_, i) => `orders-${i}`);
    const colors = [...looksOf(numbered(names.slice(0, 10))).values()].map(
      (look) => JSON.parse(look).color,
    );
    expect(new Set(colors).size).toBe(10);
    expect(new Set(looksOf(numbered(names)).values()).size).toBe(40);
  });

  it("tell forty groups apart by colour and pattern together", () => {
    forgetLooks();
    for (const dark of [false, true]) {
      const looks = Array.from({ length: 40 }, (_, id) => JSON.stringify(groupIdentity(id, dark)));
      expect(new Set(looks).size).toBe(40);
    }
  });

  it("of traffic are on an absolute scale", () => {
    expect(width(0, absolute("msgs"))).toBe(0);
    expect(position(1, absolute("msgs"))).toBe(0);
    expect(position(1000, absolute("msgs"))).toBeCloseTo(0.5);
    expect(position(1e9, absolute("msgs"))).toBe(1);
    expect(ticks(absolute("msgs")).map((rate) => Math.round(rate))).toEqual([
      1, 10, 100, 1000, 10_000, 100_000, 1_000_000,
    ]);
    expect(ticks(absolute("bytes")).length).toBe(7);
  });

  it("of traffic on a relative scale begin and end at whole ticks", () => {
    expect(relative([3, 0, 250], "msgs")).toEqual({ low: 1, high: 1000, step: 10 });
    expect(relative([1000], "msgs")).toEqual({ low: 1000, high: 10_000, step: 10 });
    expect(ticks(relative([20, 300], "bytes"))).toEqual([16, 256, 4096]);
    expect(relative([0, NaN], "bytes")).toBe(absolute("bytes"));
  });

  it("of node names are short where that is enough", () => {
    expect(labeller(["a@x", "b@y"])("a@x")).toBe("a");
    expect(labeller(["a@x", "a@y"])("a@y")).toBe("y");
    expect(labeller(["a@x", "a@y", "b@x"])("a@y")).toBe("a@y");
    expect(labeller(["nonode"])("nonode")).toBe("nonode");
  });
});
