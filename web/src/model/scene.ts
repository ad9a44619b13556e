// SPDX-License-Identifier: Apache-2.0
// What there is to draw: nodes and gateways one by one, or a group's own members as one bubble.
import type { TopologyNode } from "./protocol";
import type { Topology } from "./topology";
import { FREE, FREE_NAME } from "./flows";
import type { LayoutInput, LayoutResult } from "./layout";

type Kind = "node" | "bubble";

export interface Entity {
  /** Stable from scene to scene: n:NAME or b:GROUP. */
  key: string;
  kind: Kind;
  label: string;
  /** Groups of the node, or the bubble's one; [FREE] for what is in none. */
  groups: readonly number[];
  node: TopologyNode | null;
  /** Node ids behind this entity. */
  members: readonly number[];
  x: number;
  y: number;
  r: number;
}

export interface Disc {
  id: number;
  name: string;
  x: number;
  y: number;
  r: number;
  expanded: boolean;
  /** Own members: in this group alone. */
  own: readonly TopologyNode[];
  gateways: readonly TopologyNode[];
  down: number;
}

export interface Scene {
  entities: readonly Entity[];
  discs: readonly Disc[];
  /** Index of the entity that stands for a node, by node id; -1 for none. */
  entityOfNode: Int32Array;
}

const NODE_R = 9;
const GATEWAY_R = 11;
/** Above so many nodes groups are shown as bubbles unless one looks closer. */
export const AGGREGATE_ABOVE = 60;

export type Level = "auto" | "groups" | "nodes";

/** Which groups are shown node by node. */
export function expandedGroups(
  topology: Topology,
  level: Level,
  open: number | null,
  close: boolean,
): Set<number> {
  const all =
    level === "nodes" || (level === "auto" && (close || topology.nodes.length <= AGGREGATE_ABOVE));
  if (all) return new Set([...topology.groups.map((group) => group.id), FREE]);
  return new Set(open === null ? [] : [open]);
}

export function layoutInput(topology: Topology, aspect: number): LayoutInput {
  const groups: LayoutInput["groups"] = topology.groups.map(({ id, name }) => ({ id, name }));
  const nodes = topology.nodes.map((node) => ({
    id: node.id,
    name: node.name,
    groups: node.groups.filter((id) => topology.group(id)),
  }));
  if (nodes.some((node) => node.groups.length === 0))
    groups.push({ id: FREE, name: FREE_NAME, free: true });
  return { aspect, groups, nodes };
}

export function makeScene(
  topology: Topology,
  layout: LayoutResult,
  expanded: ReadonlySet<number>,
): Scene {
  const places = new Map(layout.nodes.map((place) => [place.id, place]));
  const entities: Entity[] = [];
  const highest = topology.nodes.reduce((most, node) => Math.max(most, node.id), -1);
  const entityOfNode = new Int32Array(highest + 1).fill(-1);
  const discs: Disc[] = [];
  const add = (entity: Entity) => {
    for (const id of entity.members) entityOfNode[id] = entities.length;
    entities.push(entity);
  };
  const own = new Map<number, TopologyNode[]>();
  const gateways = new Map<number, TopologyNode[]>();
  const push = (map: Map<number, TopologyNode[]>, group: number, node: TopologyNode) =>
    map.get(group)?.push(node) ?? map.set(group, [node]);
  for (const node of topology.nodes) {
    if (node.groups.length > 1) for (const group of node.groups) push(gateways, group, node);
    else push(own, node.groups[0] ?? FREE, node);
  }
  for (const place of layout.groups) {
    const group = topology.group(place.id);
    if (group === undefined && place.id !== FREE) continue;
    const members = own.get(place.id) ?? [];
    const crossing = gateways.get(place.id) ?? [];
    const disc: Disc = {
      id: place.id,
      name: group?.name ?? FREE_NAME,
      x: place.x,
      y: place.y,
      r: place.r,
      expanded: expanded.has(place.id),
      own: members,
      gateways: crossing,
      down: [...members, ...crossing].filter((node) => node.status !== "up").length,
    };
    discs.push(disc);
    if (disc.expanded || members.length === 0) continue;
    add({
      key: `b:${disc.name}`,
      kind: "bubble",
      label: disc.name,
      groups: [disc.id],
      node: null,
      members: members.map((node) => node.id),
      x: place.x,
      y: place.y,
      r: place.r,
    });
  }
  for (const node of topology.nodes) {
    const gateway = node.groups.length > 1;
    const place = places.get(node.id);
    if (place === undefined || (!gateway && !expanded.has(node.groups[0] ?? FREE))) continue;
    add({
      key: `n:${node.name}`,
      kind: "node",
      label: node.name,
      groups: node.groups.length === 0 ? [FREE] : node.groups,
      node,
      members: [node.id],
      x: place.x,
      y: place.y,
      r: gateway ? GATEWAY_R : NODE_R,
    });
  }
  return { entities, discs, entityOfNode };
}

/** The rectangle around discs and gateways, for fitting: x, y, width, height. */
export function extent(
  scene: Scene,
  only?: (disc: Disc) => boolean,
): [number, number, number, number] {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  const grow = (x: number, y: number, r: number) => {
    x0 = Math.min(x0, x - r);
    y0 = Math.min(y0, y - r);
    x1 = Math.max(x1, x + r);
    y1 = Math.max(y1, y + r);
  };
  const discs = only ? scene.discs.filter(only) : scene.discs;
  const groups = new Set(discs.map((disc) => disc.id));
  // Above a disc stands its label.
  for (const disc of discs) grow(disc.x, disc.y - 10, disc.r + 10);
  for (const entity of scene.entities)
    if (entity.kind === "node" && entity.groups.some((group) => groups.has(group)))
      grow(entity.x, entity.y, entity.r + 4);
  return x0 === Infinity ? [-100, -100, 200, 200] : [x0, y0, x1 - x0, y1 - y0];
}
