// SPDX-License-Identifier: Apache-2.0
// Where groups and nodes lie. Each group is a disc in which its own members sit at slots; gateways,
// and the discs, are bodies of a force layout. Positions are kept from topology to topology: what
// stays moves little, what is new comes beside what it belongs to. From nothing the same groups and nodes,
// by name, give the same places, in every browser and whatever numbers the server gives them.
import {
  forceLink,
  forceSimulation,
  forceX,
  forceY,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from "d3-force";
import { keepApart, pushApart } from "./forces";
import { walk } from "./walk";

export interface LayoutInput {
  /** Width over height of where it is shown. */
  aspect: number;
  /** Groups in order; the pseudo group of free nodes is one of them. */
  groups: { id: number; name?: string; free?: boolean }[];
  nodes: { id: number; name?: string; groups: number[] }[];
}

export interface LayoutResult {
  groups: { id: number; x: number; y: number; r: number }[];
  nodes: { id: number; x: number; y: number }[];
}

interface Body extends SimulationNodeDatum {
  key: string;
  r: number;
}

/** Distance of neighbouring nodes in a disc. */
const SPACING = 34;
const DISC_MARGIN = 24;
const GATEWAY_R = 20;
const GAP = 26;
const PULL = 0.05;
/** With more groups and gateways than these, groups that have no nodes of their own are no bodies. */
const CROWDED = 400;
/** With more bodies than these there are fewer steps, as each looks at all pairs: a layout takes about
 * as long. */
const ALL_STEPS = 120;
/** A smaller share of the steps untangles nothing. */
const LEAST_SHARE = 0.25;
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

const isGateway = ({ groups }: { groups: readonly number[] }): boolean => groups.length > 1;

const isCrowded = ({ groups, nodes }: LayoutInput): boolean =>
  groups.length + nodes.filter(isGateway).length > CROWDED;

/** About how many bodies a layout moves: what it costs. */
export function weight(input: LayoutInput): number {
  const gateways = input.nodes.filter(isGateway).length;
  if (!isCrowded(input)) return input.groups.length + gateways;
  const own = new Set(
    input.nodes.filter((node) => !isGateway(node)).map(({ groups }) => groups[0]),
  );
  return own.size + gateways;
}

export class Layout {
  private readonly slots = new Map<number, (number | null)[]>();
  private bodies = new Map<string, Body>();
  private readonly numbers = new Map<string, number>();
  /** How much stronger the pull to the middle is up and down than across. */
  private broad = 1;

  update(given: LayoutInput): LayoutResult {
    const input = this.ofOurs(given);
    const { groups, nodes } = this.updated(input);
    const id = (ours: { id: number }[], theirs: { id: number }[]) =>
      new Map(ours.map((one, i) => [one.id, theirs[i].id]));
    const [groupOf, nodeOf] = [id(input.groups, given.groups), id(input.nodes, given.nodes)];
    return {
      groups: groups.map((place) => ({ ...place, id: groupOf.get(place.id) as number })),
      nodes: nodes.map((place) => ({ ...place, id: nodeOf.get(place.id) as number })),
    };
  }

  /** With numbers of our own, in the order in which names were first seen: a server that starts anew gives others. */
  private ofOurs({ aspect, groups, nodes }: LayoutInput): LayoutInput {
    const number = (kind: string, { id, name }: { id: number; name?: string }) => {
      const key = `${kind}${name ?? id}`;
      const known = this.numbers.get(key) ?? this.numbers.size;
      this.numbers.set(key, known);
      return known;
    };
    const order = new Map(groups.map((group, i) => [group.id, [i, number("g", group)] as const]));
    return {
      aspect,
      groups: groups.map((group) => ({ ...group, id: number("g", group) })),
      nodes: nodes.map((node) => ({
        id: number("n", node),
        groups: node.groups
          .map((group) => order.get(group))
          .filter((group) => group !== undefined)
          .sort(([a], [b]) => a - b)
          .map(([, id]) => id),
      })),
    };
  }

  private updated(input: LayoutInput): LayoutResult {
    const own = this.assignSlots(input);
    const warm = this.bodies.size > 0;
    const bodies = new Map<string, Body>();
    const links: (SimulationLinkDatum<Body> & { length: number; strength: number })[] = [];
    const aspect = Math.min(2.2, Math.max(0.45, input.aspect));
    const body = (key: string, r: number, place: () => [number, number]): Body => {
      const old = this.bodies.get(key);
      const [x, y] = old ? [old.x as number, old.y as number] : place();
      const one: Body = { key, r, x, y };
      bodies.set(key, one);
      return one;
    };
    const total = input.groups.length;
    const extent = 90 * Math.sqrt(total);
    const crowded = isCrowded(input);
    // (The walk looks at all groups of a gateway for each of them.)
    const order = crowded ? input.groups.map(({ id }) => id) : walk(input);
    const place = new Map(order.map((id, i) => [id, i]));
    const from = extent * 1.1;
    const onRing = (group: number): [number, number] => {
      const angle = (2 * Math.PI * ((place.get(group) as number) + 0.5)) / total - Math.PI / 2;
      return [from * Math.cos(angle) * aspect ** 0.5, (from * Math.sin(angle)) / aspect ** 0.5];
    };
    for (const group of input.groups) {
      const members = own.get(group.id) ?? [];
      if (crowded && members.length === 0) continue;
      // New discs start on a ring, side by side with those that they share gateways with.
      body(
        `g${group.id}`,
        discRadius(members.length),
        () => this.beside(input, group.id) ?? onRing(group.id),
      );
    }
    for (const node of input.nodes) {
      if (node.groups.length < 2) continue;
      const discs = node.groups
        .map((group) => bodies.get(`g${group}`))
        .filter((disc) => disc !== undefined);
      const gateway = body(`n${node.id}`, GATEWAY_R, () => {
        const jitter = (node.id * GOLDEN) % (2 * Math.PI);
        const [x, y] =
          discs.length > 0 ? [mean(discs, "x"), mean(discs, "y")] : onRing(node.groups[0]);
        return [x + 12 * Math.cos(jitter), y + 12 * Math.sin(jitter)];
      });
      discs.forEach((disc, i) => {
        links.push({
          source: gateway,
          target: disc,
          length: disc.r + GATEWAY_R + 6,
          strength: 0.5,
        });
        for (const other of discs.slice(i + 1))
          links.push({
            source: disc,
            target: other,
            length: disc.r + other.r + 2 * GATEWAY_R + GAP,
            strength: 0.12,
          });
      });
    }
    // Groups that are no bodies pull nothing: their gateways pull each other instead, each its neighbours.
    const degree = new Map<Body, number>();
    const sharing = crowded ? this.sharing(input, bodies) : [];
    for (const pair of sharing) for (const one of pair) degree.set(one, (degree.get(one) ?? 0) + 1);
    for (const [source, target] of sharing)
      links.push({
        source,
        target,
        length: 2 * GATEWAY_R + 2 * GAP,
        strength: 1 / Math.max(degree.get(source) ?? 1, degree.get(target) ?? 1),
      });
    const pull = forceLink<Body, (typeof links)[number]>(links)
      .distance((link) => link.length)
      .strength((link) => link.strength);
    const horizontal = forceX<Body>(0);
    const vertical = forceY<Body>(0);
    const shape = (broad: number) => {
      horizontal.strength(PULL / broad);
      vertical.strength(PULL * broad);
    };
    this.broad = warm ? this.broad : aspect;
    shape(this.broad);
    const share = Math.min(1, Math.max(LEAST_SHARE, (ALL_STEPS / bodies.size) ** 2));
    const steps = (all: number) => Math.ceil(all * share);
    // Cools down as far in fewer steps as in all.
    const decay = (each: number) => 1 - (1 - each) ** (1 / share);
    const simulation = forceSimulation([...bodies.values()])
      .stop()
      .velocityDecay(0.35)
      .force("x", horizontal)
      .force("y", vertical)
      .force("links", pull);
    if (!warm) {
      // First they untangle, free to pass through each other, then they make room.
      simulation.alphaDecay(decay(0.02)).force(
        "charge",
        pushApart((one) => -14 * one.r),
      );
      run(simulation, steps(150));
      simulation.force("charge", null).alpha(0.5).alphaDecay(decay(0.025));
    } else {
      simulation.alpha(0.3).alphaDecay(decay(0.03));
    }
    simulation.force(
      "apart",
      keepApart((one) => one.r + GAP / 2, 0.9, 3),
    );
    run(simulation, steps(warm ? 110 : 130));
    // Pressed into the shape of the place where it is shown.
    for (let tries = 0; !warm && tries < 3; tries++) {
      const off = aspect / proportions([...bodies.values()]);
      if (off > 0.85 && off < 1.18) break;
      this.broad = Math.min(6, Math.max(0.16, this.broad * off ** 0.8));
      shape(this.broad);
      run(simulation.alpha(0.4), steps(80));
    }
    this.bodies = bodies;
    return this.result(input, own);
  }

  private result(input: LayoutInput, own: Map<number, (number | null)[]>): LayoutResult {
    const nodes: LayoutResult["nodes"] = [];
    const between = this.between(input);
    const groups = input.groups.map(({ id }) => {
      const disc = this.bodies.get(`g${id}`);
      if (disc === undefined)
        return { id, ...(between.get(id) ?? { x: 0, y: 0 }), r: discRadius(0) };
      const slots = own.get(id) ?? [];
      slots.forEach((node, slot) => {
        if (node === null) return;
        const [dx, dy] = slotPosition(slot, slots.length);
        nodes.push({ id: node, x: (disc.x as number) + dx, y: (disc.y as number) + dy });
      });
      return { id, x: disc.x as number, y: disc.y as number, r: disc.r };
    });
    for (const node of input.nodes) {
      const gateway = this.bodies.get(`n${node.id}`);
      if (gateway !== undefined)
        nodes.push({ id: node.id, x: gateway.x as number, y: gateway.y as number });
    }
    return { groups, nodes };
  }

  /** The gateways of each group that is no body, those that follow each other in it: each pair once. */
  private sharing(input: LayoutInput, bodies: ReadonlyMap<string, Body>): [Body, Body][] {
    const last = new Map<number, string>();
    const pairs = new Map<string, [Body, Body]>();
    for (const node of input.nodes) {
      const key = `n${node.id}`;
      const gateway = bodies.get(key);
      if (gateway === undefined) continue;
      for (const group of node.groups) {
        if (bodies.has(`g${group}`)) continue;
        const before = last.get(group);
        if (before !== undefined)
          pairs.set(`${before} ${key}`, [bodies.get(before) as Body, gateway]);
        last.set(group, key);
      }
    }
    return [...pairs.values()];
  }

  /** Where the groups lie that are no bodies: amid their gateways, those of the same ones in a spiral. */
  private between(input: LayoutInput): Map<number, { x: number; y: number }> {
    const gateways = new Map<number, string[]>();
    for (const { id, groups } of input.nodes)
      for (const group of groups) {
        if (this.bodies.has(`g${group}`)) continue;
        const those = gateways.get(group);
        if (those === undefined) gateways.set(group, [`n${id}`]);
        else those.push(`n${id}`);
      }
    const alike = new Map<string, number>();
    const places = new Map<number, { x: number; y: number }>();
    for (const [group, keys] of gateways) {
      const bodies = keys.map((key) => this.bodies.get(key)).filter((body) => body !== undefined);
      const turn = alike.get(keys.join()) ?? 0;
      alike.set(keys.join(), turn + 1);
      const r = 0.5 * SPACING * Math.sqrt(turn);
      places.set(group, {
        x: mean(bodies, "x") + r * Math.cos(turn * GOLDEN),
        y: mean(bodies, "y") + r * Math.sin(turn * GOLDEN),
      });
    }
    return places;
  }

  /** Each group's own members at the slots they had; new ones take free slots, then more. */
  private assignSlots(input: LayoutInput): Map<number, (number | null)[]> {
    const members = new Map<number, number[]>(input.groups.map((group) => [group.id, []]));
    const free = input.groups.find((group) => group.free)?.id;
    for (const node of input.nodes) {
      if (node.groups.length > 1) continue;
      members.get(node.groups[0] ?? free ?? NaN)?.push(node.id);
    }
    for (const id of [...this.slots.keys()]) if (!members.has(id)) this.slots.delete(id);
    for (const [group, ids] of members) {
      const present = new Set(ids);
      let slots = (this.slots.get(group) ?? []).map((node) =>
        node !== null && present.delete(node) ? node : null,
      );
      // A disc half empty is smaller in order than in its old places.
      if (slots.length > 2 * ids.length) slots = slots.filter((node) => node !== null);
      for (const id of ids) {
        if (!present.has(id)) continue;
        const hole = slots.indexOf(null);
        if (hole >= 0) slots[hole] = id;
        else slots.push(id);
      }
      while (slots.length > 0 && slots[slots.length - 1] === null) slots.pop();
      this.slots.set(group, slots);
    }
    return this.slots;
  }

  /** A new group comes where its gateways or members already are. */
  private beside(input: LayoutInput, group: number): [number, number] | null {
    const known = input.nodes
      .filter((node) => node.groups.includes(group))
      .flatMap((node) => [
        this.bodies.get(`n${node.id}`),
        ...node.groups.map((id) => this.bodies.get(`g${id}`)),
      ])
      .filter((body) => body !== undefined);
    return known.length === 0 ? null : [mean(known, "x") + 3, mean(known, "y") + 3];
  }
}

function run(simulation: { tick(): unknown }, ticks: number): void {
  for (let i = 0; i < ticks; i++) simulation.tick();
}

/** Width over height of what the bodies take. */
function proportions(bodies: readonly Body[]): number {
  const span = (axis: "x" | "y") =>
    Math.max(...bodies.map((body) => (body[axis] as number) + body.r)) -
    Math.min(...bodies.map((body) => (body[axis] as number) - body.r));
  return bodies.length < 3 ? 1 : span("x") / span("y");
}

export function discRadius(members: number): number {
  if (members === 0) return 14;
  if (members === 1) return DISC_MARGIN;
  const slots = Array.from({ length: members }, (_, slot) => slotPosition(slot, members));
  return Math.max(...slots.map(([x, y]) => Math.hypot(x, y))) + DISC_MARGIN;
}

/** Few members sit on a ring, more on a sunflower's spiral. */
export function slotPosition(slot: number, members: number): [number, number] {
  if (members === 1) return [0, 0];
  if (members <= 5) {
    const r = SPACING / 2 / Math.sin(Math.PI / members);
    const angle = (slot * 2 * Math.PI) / members - Math.PI / 2;
    return [r * Math.cos(angle), r * Math.sin(angle)];
  }
  const r = SPACING * 0.56 * Math.sqrt(slot + 0.35);
  return [r * Math.cos(slot * GOLDEN), r * Math.sin(slot * GOLDEN)];
}

function mean(bodies: readonly Body[], axis: "x" | "y"): number {
  return bodies.length === 0
    ? 0
    : bodies.reduce((sum, body) => sum + (body[axis] as number), 0) / bodies.length;
}
