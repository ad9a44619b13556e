// SPDX-License-Identifier: Apache-2.0
// What is to be painted, and what both the shapes and their labels need to know of it.
import type { Edges } from "../../model/edges";
import type { Disc, Entity } from "../../model/scene";
import type { Palette } from "../../ui/theme";
import type { Item, Motion } from "./motion";

export type EntityItem = Item & { entity: Entity };
/** extra: 1 for a group shown node by node, 0 for a bubble. */
export type DiscItem = Item & { disc: Disc };

export interface Picture {
  palette: Palette;
  width: number;
  height: number;
  ratio: number;
  k: number;
  tx: number;
  ty: number;
  entities: Motion<EntityItem>;
  discs: Motion<DiscItem>;
  edges: Edges;
  /** Whose edges stand out, or -1. */
  focus: number;
  /** Keyboard focus is to be seen on it, or -1. */
  ring: number;
  /** By entity: 0 is dimmed. */
  lit: Uint8Array | null;
  /** Groups of what is not dimmed. */
  litGroups: ReadonlySet<number> | null;
  /** Whether a group is open or pointed at. */
  isNamed: (disc: Disc) => boolean;
  /** Traffic inside a group, for bubbles' text: msg/s or bytes/s with its unit. */
  inside: (group: number) => string;
  labelOf: (entity: Entity) => string;
  edgeFocus: number;
  alerts: ReadonlyMap<string, "warning" | "critical">;
}

/** Radius in world units, within bounds on the screen. */
export function nodeRadius(r: number, k: number): number {
  return Math.min(24, Math.max(4.5, r * k)) / k;
}

export function isLit(p: Picture, disc: Disc): boolean {
  return p.litGroups === null || p.litGroups.has(disc.id);
}
