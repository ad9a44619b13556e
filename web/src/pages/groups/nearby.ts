// SPDX-License-Identifier: Apache-2.0
// What is near a place of the map.
import { type Curve, distanceTo, nextTo as nextOf } from "../../model/curve";
import type { Entity } from "../../model/scene";
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
  const { items } = entities;
  const at = nextOf(
    items.length,
    (i) => entities.x(i),
    (i) => entities.y(i),
    from,
    dx,
    dy,
  );
  return items[at]?.entity ?? null;
}
