// SPDX-License-Identifier: Apache-2.0
// Where groups and nodes lie. Each group is a disc in which its own members sit at slots; gateways,
// and the discs, are bodies of a force layout. Positions are kept from topology to topology: what
// stays moves little, what is new comes beside what it belongs to. From nothing the same groups and nodes,
// by name, give the same places, in every browser and whatever numbers the server gives them.
import {
  forceCollide,
  forceLink,
  forceManyBody,
  forceSimulation,
  forceX,
  forceY,
  type SimulationLinkDatum,
  type SimulationNodeDatum,
} from "d3-force";
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
const GOLDEN = Math.PI * (3 - Math.sqrt(5));

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
    const place = new Map(walk(input).map((id, i) => [id, i]));
    for (const group of input.groups) {
      const members = own.get(group.id) ?? [];
      // New discs start on a ring, side by side with those that they share gateways with.
      const angle = (2 * Math.PI * ((place.get(group.id) as number) + 0.5)) / total - Math.PI / 2;
      const from = extent * 1.1;
      body(`g${group.id}`, discRadius(members.length), () => {
        const beside = this.beside(input, group.id);
        return (
          beside ?? [
            from * Math.cos(angle) * aspect ** 0.5,
            (from * Math.sin(angle)) / aspect ** 0.5,
          ]
        );
      });
    }
    for (const node of input.nodes) {
      if (node.groups.length < 2) continue;
      const discs = node.groups
        .map((group) => bodies.get(`g${group}`))
        .filter((disc) => disc !== undefined);
      const gateway = body(`n${node.id}`, GATEWAY_R, () => {
        const jitter = (node.id * GOLDEN) % (2 * Math.PI);
        return [mean(discs, "x") + 12 * Math.cos(jitter), mean(discs, "y") + 12 * Math.sin(jitter)];
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
    const simulation = forceSimulation([...bodies.values()])
      .stop()
      .velocityDecay(0.35)
      .force("x", horizontal)
      .force("y", vertical)
      .force("links", pull);
    if (!warm) {
      // First they untangle, free to pass through each other, then they make room.
      simulation.alphaDecay(0.02).force(
        "charge",
        forceManyBody<Body>().strength((one) => -14 * one.r),
      );
      run(simulation, 150);
      simulation.force("charge", null).alpha(0.5).alphaDecay(0.025);
    } else {
      simulation.alpha(0.3).alphaDecay(0.03);
    }
    simulation.force(
      "apart",
      forceCollide<Body>((one) => one.r + GAP / 2)
        .strength(0.9)
        .iterations(3),
    );
    run(simulation, warm ? 110 : 130);
    // Pressed into the shape of the place where it is shown.
    for (let tries = 0; !warm && tries < 3; tries++) {
      const off = aspect / proportions([...bodies.values()]);
      if (off > 0.85 && off < 1.18) break;
      this.broad = Math.min(6, Math.max(0.16, this.broad * off ** 0.8));
      shape(this.broad);
      run(simulation.alpha(0.4), 80);
    }
    this.bodies = bodies;
    return this.result(input, own);
  }

  private result(input: LayoutInput, own: Map<number, (number | null)[]>): LayoutResult {
    const nodes: LayoutResult["nodes"] = [];
    const groups = input.groups.map(({ id }) => {
      const disc = this.bodies.get(`g${id}`) as Body;
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
