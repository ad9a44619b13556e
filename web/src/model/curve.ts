// SPDX-License-Identifier: Apache-2.0
// Curves between two circles. Each direction keeps to its right, so that both are seen.

export interface Curve {
  x0: number;
  y0: number;
  cx: number;
  cy: number;
  x1: number;
  y1: number;
}

/** From the rim of one circle to that of another; `k` (px per unit) bounds the bend on the screen. */
export function curve(
  ax: number,
  ay: number,
  ar: number,
  bx: number,
  by: number,
  br: number,
  k: number,
  into: Curve,
): void {
  const dx = bx - ax;
  const dy = by - ay;
  const length = Math.hypot(dx, dy) || 1e-6;
  const bend = Math.min(0.16 * length, 46 / k);
  // To the right of the way, as the screen's y goes down.
  into.cx = (ax + bx) / 2 - (dy / length) * bend;
  into.cy = (ay + by) / 2 + (dx / length) * bend;
  const fromLength = Math.hypot(into.cx - ax, into.cy - ay) || 1e-6;
  const toLength = Math.hypot(into.cx - bx, into.cy - by) || 1e-6;
  const start = Math.min(ar, 0.45 * fromLength);
  const end = Math.min(br, 0.45 * toLength);
  into.x0 = ax + ((into.cx - ax) / fromLength) * start;
  into.y0 = ay + ((into.cy - ay) / fromLength) * start;
  into.x1 = bx + ((into.cx - bx) / toLength) * end;
  into.y1 = by + ((into.cy - by) / toLength) * end;
}

/** The arrow's head at the end of a curve, as a part of the path. */
export function arrow(
  c: Pick<CanvasPath, "moveTo" | "lineTo" | "closePath">,
  { cx, cy, x1, y1 }: Curve,
  size: number,
): void {
  const length = Math.hypot(x1 - cx, y1 - cy) || 1e-6;
  const ux = (x1 - cx) / length;
  const uy = (y1 - cy) / length;
  const bx = x1 - ux * size;
  const by = y1 - uy * size;
  const half = size * 0.5;
  c.moveTo(x1, y1);
  c.lineTo(bx - uy * half, by + ux * half);
  c.lineTo(bx + uy * half, by - ux * half);
  c.closePath();
}

/** The least distance of a point from a curve. */
export function distanceTo(curve: Curve, x: number, y: number): number {
  let least = Infinity;
  for (let i = 0; i <= 14; i++) {
    const t = i / 14;
    const u = 1 - t;
    const px = u * u * curve.x0 + 2 * u * t * curve.cx + t * t * curve.x1;
    const py = u * u * curve.y0 + 2 * u * t * curve.cy + t * t * curve.y1;
    least = Math.min(least, (px - x) ** 2 + (py - y) ** 2);
  }
  return Math.sqrt(least);
}

/** What lies next to one of several places in a direction, by angle and distance; -1 where nothing does. */
export function nextTo(
  count: number,
  x: (i: number) => number,
  y: (i: number) => number,
  from: number,
  dx: number,
  dy: number,
): number {
  let best = -1;
  let least = Infinity;
  for (let i = 0; i < count; i++) {
    if (i === from) continue;
    const ox = x(i) - x(from);
    const oy = y(i) - y(from);
    const along = ox * dx + oy * dy;
    const across = Math.abs(ox * dy - oy * dx);
    if (along <= 0 || across > along * 1.2) continue;
    const cost = along + 2 * across;
    if (cost < least) [best, least] = [i, cost];
  }
  return best;
}
