// SPDX-License-Identifier: Apache-2.0
// What is near a place of the map.
import type { Entity } from "../../model/scene";
import { type Curve, distanceTo } from "./geometry";
import type { Motion } from "./motion";
import { curveOf } from "./paint";
import type { EntityItem, Picture } from "./picture";

/** The edge nearest to a place, in world units and no further than `reach`, or -1. */
export function edgeAt(
  picture: Pick<Picture, "edges" | "entities" | "k">,
  x: number,
  y: number,
  reach: number,
): number {
  const { edges } = picture;
  const shape: Curve = { x0: 0, y0: 0, cx: 0, cy: 0, x1: 0, y1: 0 };
  const slack = reach * 3;
  let best = -1;
  let least = reach;
  for (let e = 0; e < edges.count; e++) {
    if (edges.shown[e] <= -0.15) continue;
    curveOf(picture, e, shape);
    if (
      x < Math.min(shape.x0, shape.cx, shape.x1) - slack ||
      x > Math.max(shape.x0, shape.cx, shape.x1) + slack
    )
      continue;
    const distance = distanceTo(shape, x, y);
    if (distance < least) [best, least] = [e, distance];
  }
  return best;
}

/** The entity that lies next to another one in a direction, by angle and distance. */
export function nextTo(
  entities: Motion<EntityItem>,
  from: number,
  dx: number,
  dy: number,
): Entity | null {
  let best: Entity | null = null;
  let least = Infinity;
  entities.items.forEach(({ entity }, i) => {
    if (i === from) return;
    const ox = entities.x(i) - entities.x(from);
    const oy = entities.y(i) - entities.y(from);
    const along = ox * dx + oy * dy;
    const across = Math.abs(ox * dy - oy * dx);
    if (along <= 0 || across > along * 1.2) return;
    const cost = along + 2 * across;
    if (cost < least) [best, least] = [entity, cost];
  });
  return best;
}
